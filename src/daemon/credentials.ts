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
  const kept = new Map<string, { readonly credentials: RegistryCredentials; readonly timer: NodeJS.Timeout }>();
  return {
    keep(auth) {
      const token = createHmac('sha256', key)
        .update(JSON.stringify(auth))
        .digest('base64url')
        .slice(0, TOKEN_CHARACTERS);
      // Those of an earlier pull are this one's now, and their time begins anew.
      clearTimeout(kept.get(token)?.timer);
      const timer = setTimeout(() => kept.delete(token), KEPT_MS).unref();
      kept.set(token, { credentials: given(auth), timer });
      return token;
    },
    find: (token) => kept.get(token)?.credentials ?? null,
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
