/**
 * What a connection that could not be made means to whoever configures registries: most have a line of hosts.toml as
 * their remedy, and asking again does not help them. Pure.
 */

export interface ConnectionProblem {
  readonly detail: string;
  /** False when the same server will do no better the next time. */
  readonly retryable: boolean;
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Codes whose message says all there is to say. */
const PLAIN_TO_SEE: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

const NO_TLS = /wrong version number|packet length too long|unknown protocol/i;
const WANTS_CLIENT_CERTIFICATE = /alert (?:bad certificate|certificate required|unknown ca|certificate unknown)/i;

/** Without what Node says of its own command line, and on one line. */
const wordsOf = (message: string): string =>
  message
    .replace(/; if the root CA is installed locally.*$/s, '')
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim();

/** Takes what a request was ended by. */
export const connectionProblem = (error: unknown): ConnectionProblem => {
  if (!(error instanceof Error)) return { detail: String(error), retryable: true };
  const { code = '' } = error as NodeJS.ErrnoException;
  const words = wordsOf(error.message) || code || error.name;
  const final = (detail: string): ConnectionProblem => ({ detail, retryable: false });
  if (UNTRUSTED.has(code)) {
    const remedy = "add the authority's certificate to those of this machine, or as ca to the registry's hosts.toml";
    return final(`its certificate is not trusted (${words}): ${remedy}`);
  }
  if (PLAIN_TO_SEE.has(code)) return final(`its certificate is not valid: ${words}`);
  if (NO_TLS.test(words)) {
    return final(`it does not speak TLS; where plain http is wanted, write http:// in the registry's hosts.toml`);
  }
  if (WANTS_CLIENT_CERTIFICATE.test(words)) {
    return final(
      "it does not take the client certificate, or wants one: name it as client in the registry's hosts.toml",
    );
  }
  return { detail: words, retryable: true };
};
