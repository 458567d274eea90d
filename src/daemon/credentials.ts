/**
 * Registry credentials between the call that brings them and the pull that uses them: in memory only, under tokens
 * that say nothing (C12). Equal credentials have the same token, so that equal pulls can be one.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { RegistryCredentials } from '../adapters/images/types.ts';
import type { AuthConfig } from '../wire/cri/api.ts';

export interface Credentials {
  readonly keep: (auth: AuthConfig) => string;
  readonly find: (token: string) => RegistryCredentials | null;
}

/** Pulls are done or given up by then. */
const KEPT_MS = 3_600_000;
const TOKEN_CHARACTERS = 22;

export function createCredentials(): Credentials {
  const key = randomBytes(32);
  const kept = new Map<string, RegistryCredentials>();
  return {
    keep(auth) {
      const token = createHmac('sha256', key)
        .update(JSON.stringify(auth))
        .digest('base64url')
        .slice(0, TOKEN_CHARACTERS);
      kept.set(token, given(auth));
      setTimeout(() => kept.delete(token), KEPT_MS).unref();
      return token;
    },
    find: (token) => kept.get(token) ?? null,
  };
}

const given = ({
  username,
  password,
  auth,
  serverAddress,
  identityToken,
  registryToken,
}: AuthConfig): RegistryCredentials => ({
  ...(username === '' ? {} : { username }),
  ...(password === '' ? {} : { password }),
  ...(auth === '' ? {} : { auth }),
  ...(serverAddress === '' ? {} : { serverAddress }),
  ...(identityToken === '' ? {} : { identityToken }),
  ...(registryToken === '' ? {} : { registryToken }),
});
