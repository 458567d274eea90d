/** What a request had more than the contract knows: docs/decisions/unknown-fields.md says what is kept of it. */

/** A field of a request that is of a newer contract: its path by names, and its number there: config.linux.17. */
export interface UnknownField {
  readonly field: string;
  /** Of its value. */
  readonly bytes: number;
  /**
   * Its value, where it is kept: numbers in decimal as unsigned ones, text as it is. A later contract decodes it by the
   * number that `field` ends with, the wire type, and this.
   */
  readonly text?: string;
  readonly base64?: string;
  /** As in protobuf's encoding; absent where no value is kept, and in records of before it was written down. */
  readonly wireType?: number;
}
