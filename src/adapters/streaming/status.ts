/**
 * How a session ended, as clients read it on the error stream: a Kubernetes Status from version 4 of the protocol on,
 * a sentence before that. The words are the API's own; clients look for them.
 */

export type Ending =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string };

const sentenceOf = (exitCode: number): string => `command terminated with exit code ${exitCode}`;

const statusOf = (ending: Ending): object => {
  if (ending.kind === 'failed') {
    return {
      metadata: {},
      status: 'Failure',
      message: `Internal error occurred: ${ending.message}`,
      reason: 'InternalError',
      code: 500,
    };
  }
  if (ending.kind === 'done' || ending.exitCode === 0) return { metadata: {}, status: 'Success' };
  return {
    metadata: {},
    status: 'Failure',
    message: sentenceOf(ending.exitCode),
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(ending.exitCode) }] },
  };
};

/** What is written on the error stream, if anything; `isStructured` from version 4 on. */
export const endingText = (ending: Ending, isStructured: boolean): string | undefined => {
  if (isStructured) return JSON.stringify(statusOf(ending));
  if (ending.kind === 'failed') return ending.message;
  return ending.kind === 'exited' && ending.exitCode !== 0 ? sentenceOf(ending.exitCode) : undefined;
};
