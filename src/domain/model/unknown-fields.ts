/** What a request had more than the contract knows: docs/decisions/unknown-fields.md says what is kept of it. */

/** A field of a request that is of a newer contract: its path by names, and its number there: config.linux.17. */
export interface UnknownField {
  readonly field: string;
  readonly bytes: number;
  /** Its value, of requests in which none can be a secret; numbers in decimal. */
  readonly text?: string;
  readonly base64?: string;
}
