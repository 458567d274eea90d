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

/** Whether credentials are for `endpointHost`, see identityFor. */
const isMeant = (
  { serverAddress }: RegistryCredentials,
  registryHost: string,
  endpointHost: string,
  mirrorCredentials: boolean,
): boolean =>
  (!serverAddress && mirrorCredentials) || namedHost(serverAddress || registryHost) === endpointHost.toLowerCase();

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
  if (credentials === null || !isMeant(credentials, registryHost, endpointHost, mirrorCredentials)) return anonymous;
  return identityOf(credentials);
};

/** What may be shown of an address that a client names, which can hold a password. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/** Why nobody in particular is at `endpointHost`, behind "wants credentials and was given"; asked where identityFor says so. */
export const whyAnonymous = (
  credentials: RegistryCredentials | null,
  registryHost: string,
  endpointHost: string,
  mirrorCredentials: boolean,
): string => {
  if (credentials === null) return 'none';
  if (isMeant(credentials, registryHost, endpointHost, mirrorCredentials))
    return credentials.auth ? 'some that cannot be read: auth is not user:password in base64' : 'none';
  const meant = namedHost(credentials.serverAddress || registryHost);
  return HOST.test(meant) ? `some for ${meant} alone` : 'some for another server alone';
};
