/**
 * Whose credentials go where. A client's credentials are for the server that they name, and for no other. Where they name
 * none they are for the image's registry, and for the mirrors that the node's own hosts.toml gives it, if the node so wants.
 * The target of a redirect and the address of a foreign layer never get any. Pure.
 */
import type { RegistryCredentials } from '../types.ts';
import { serverOf } from './hosts.ts';

/** What can be shown to a registry or its token server. */
export type Identity =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  | { readonly kind: 'identityToken'; readonly token: string }
  | { readonly kind: 'registryToken'; readonly token: string };

const anonymous: Identity = { kind: 'anonymous' };

const HUB_NAMES: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io', 'www.docker.io']);

/** The host of "https://registry.example/v1/" or "registry.example", with Docker Hub's many names made one. */
const namedHost = (address: string): string => {
  const host = address
    .replace(/^https?:\/\//i, '')
    .replace(/\/.*$/, '')
    .toLowerCase();
  return serverOf(HUB_NAMES.has(host) ? 'docker.io' : host);
};

const decodeAuth = (auth: string): Identity => {
  const text = Buffer.from(auth, 'base64').toString('utf8').replace(/\0+$/, '');
  const colon = text.indexOf(':');
  if (colon < 0) return anonymous;
  return { kind: 'password', username: text.slice(0, colon), password: text.slice(colon + 1) };
};

const identityOf = (credentials: RegistryCredentials): Identity => {
  if (credentials.registryToken) return { kind: 'registryToken', token: credentials.registryToken };
  if (credentials.identityToken) return { kind: 'identityToken', token: credentials.identityToken };
  if (credentials.username) {
    return { kind: 'password', username: credentials.username, password: credentials.password ?? '' };
  }
  return credentials.auth ? decodeAuth(credentials.auth) : anonymous;
};

/**
 * Who to be at `endpointHost`, a server that the node's configuration names for images of `registryHost`, or that registry
 * itself.
 */
export const identityFor = (
  credentials: RegistryCredentials | null,
  registryHost: string,
  endpointHost: string,
  mirrorCredentials: boolean,
): Identity => {
  if (credentials === null) return anonymous;
  if (!credentials.serverAddress && mirrorCredentials) return identityOf(credentials);
  const meant = namedHost(credentials.serverAddress || registryHost);
  return meant === endpointHost.toLowerCase() ? identityOf(credentials) : anonymous;
};
