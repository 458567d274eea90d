/**
 * Secret tokens of a process's environment and arguments, filled in (C12): for config.json and for what the shim is told of
 * a command. Both throw FailureError Interrupted when a secret is not known any more, and InvalidField when one is no text.
 */
import { FailureError } from '../../domain/model/errors.ts';
import type { OciArg, OciEnv } from '../../domain/model/oci.ts';
import type { SecretVault } from './secrets.ts';

/** JSON can hold text only, so a value that is none can't be handed on to an OCI runtime. */
const textOf = (what: string, value: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value);
  } catch (cause) {
    const message = `The value of ${what} is not valid UTF-8: encode it as text.`;
    throw new FailureError('InvalidField', message, { cause });
  }
};

/** NAME=value. */
export const filledEnv = (env: OciEnv, vault: Pick<SecretVault, 'fill'>): string =>
  typeof env === 'string'
    ? env
    : `${env.name}=${textOf(`the environment variable ${env.name}`, vault.fill(env.token))}`;

export const filledArg = (arg: OciArg, vault: Pick<SecretVault, 'fill'>): string =>
  typeof arg === 'string' ? arg : textOf('an argument', vault.fill(arg.token));
