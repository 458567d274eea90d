/**
 * How a registry is convinced (distribution's token specification, RFC 7235): its challenge is answered with Basic
 * credentials or a bearer token from the server the challenge names. Answers are kept for the length of one pull.
 * Secrets appear in no message.
 */
import * as z from 'zod/mini';
import { readAs } from '../../../platform/foreign-json.ts';
import { retryAfterMsIn } from '../../../platform/rpc/retry.ts';
import { isRetryable, statusText, waitText } from './failures.ts';
import { isLoopback, type TlsMaterial } from './hosts.ts';
import { type HttpClient, type HttpResponse, readWhole, refuseLocal, RequestError, shownUrl } from './http.ts';
import type { Identity } from './credentials.ts';

export interface Challenge {
  /** Lower case. */
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const HEADER_LENGTH_MAX = 8192;
const TOKEN_BYTES_MAX = 1024 * 1024;
const CLIENT_ID = 'scribe';
const DIAL_TIMEOUT_MS = 30_000;
/** What a bearer token or an identity may look like in a header. */
const HEADER_SAFE = /^[\x20-\x7e]+$/;

/** Challenges of a WWW-Authenticate header, in its order. What can't be read is left out. */
export const parseChallenges = (header: string): readonly Challenge[] => {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  const token = /[\s,]*(?:([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))|([A-Za-z][A-Za-z0-9_-]*)(?=\s|$))/y;
  const text = header.slice(0, HEADER_LENGTH_MAX);
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [, name, quoted, plain, scheme] = match;
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: new Map() });
    else if (name !== undefined) {
      challenges.at(-1)?.parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '');
    }
  }
  return challenges;
};

const basic = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const denied = (what: string): RequestError => new RequestError('RegistryDenied', what, { retryable: false });

/** Who asked for credentials. */
export interface Asker {
  readonly url: URL;
  /** On this machine, or only in reach of it. */
  readonly isLocal: boolean;
}

const realmOf = (challenge: Challenge, { url: asker, isLocal }: Asker): URL => {
  const realm = challenge.parameters.get('realm') ?? '';
  if (!URL.canParse(realm)) throw denied(`${shownUrl(asker)} wants a token but does not say from where`);
  const url = new URL(realm);
  if (!isLocal) refuseLocal(url, `the token that ${shownUrl(asker)} wants`);
  const isAllowed =
    url.protocol === 'https:' || (url.protocol === 'http:' && (isLoopback(url.host) || url.origin === asker.origin));
  if (!isAllowed) throw denied(`${shownUrl(asker)} wants a token from ${shownUrl(url)}, which is not https`);
  return url;
};

const tokenField = z.nullish(z.string().check(z.maxLength(TOKEN_BYTES_MAX)));
const tokenSchema = z.object({ token: tokenField, access_token: tokenField });

const tokenOf = (body: Buffer, realm: URL): string => {
  const answer = readAs(tokenSchema, body.toString('utf8'));
  const found = answer?.token || answer?.access_token;
  if (!found || !HEADER_SAFE.test(found)) throw denied(`the token server ${shownUrl(realm)} answered without a token`);
  return found;
};

const checkTokenStatus = (response: HttpResponse, realm: URL): void => {
  if (response.status === 200) return;
  const retryAfterMs = retryAfterMsIn(response.header('retry-after'));
  const what = `the token server ${shownUrl(realm)} answered ${statusText(response.status)}${waitText(retryAfterMs)}`;
  if (response.status === 401 || response.status === 403) throw denied(what);
  throw new RequestError('RegistryFailed', what, { retryable: isRetryable(response.status), retryAfterMs });
};

export interface Authenticator {
  /** Value of the Authorization header to begin with; null for none. Throws RequestError for one that no header can hold. */
  readonly current: () => string | null;
  /**
   * Takes the challenge of a 401 to the request that `used` was sent with, and gives what to try instead. Throws
   * RequestError RegistryDenied when there is nothing.
   */
  readonly answer: (
    challenges: readonly Challenge[],
    asker: Asker,
    used: string | null,
    signal: AbortSignal,
  ) => Promise<string>;
}

/** Speaks for one identity to one server about one repository. `repository` is its path there. */
export const createAuthenticator = (options: {
  readonly identity: Identity;
  /** What the pull came with, where that is no identity here. */
  readonly given: () => string;
  readonly repository: string;
  readonly http: HttpClient;
  readonly tls: TlsMaterial;
}): Authenticator => {
  const { identity, given, repository, http, tls } = options;
  let authorization: string | null = identity.kind === 'registryToken' ? `Bearer ${identity.token}` : null;
  let fetching: Promise<string> | null = null;

  const fetchToken = async (challenge: Challenge, asker: Asker, signal: AbortSignal): Promise<string> => {
    const realm = realmOf(challenge, asker);
    const service = challenge.parameters.get('service') ?? '';
    const scope = challenge.parameters.get('scope') || `repository:${repository}:pull`;
    // The registry's own authorities and client certificate are for its own host.
    const common = {
      tls: realm.host === asker.url.host ? tls : { ...tls, clientPairs: [] },
      dialTimeoutMs: DIAL_TIMEOUT_MS,
      isNamedFromAfar: !asker.isLocal,
    };
    let response: HttpResponse;
    if (identity.kind === 'identityToken') {
      const form = { grant_type: 'refresh_token', service, client_id: CLIENT_ID, scope, refresh_token: identity.token };
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const body = new URLSearchParams(form).toString();
      response = await http.send({ ...common, url: realm, method: 'POST', headers, body }, signal);
    } else {
      const url = new URL(realm);
      if (service !== '') url.searchParams.set('service', service);
      for (const part of scope.split(' ')) url.searchParams.append('scope', part);
      if (identity.kind === 'password') url.searchParams.set('account', identity.username);
      const headers =
        identity.kind === 'password' ? { authorization: basic(identity.username, identity.password) } : {};
      response = await http.send({ ...common, url, method: 'GET', headers }, signal);
    }
    const body = await readWhole(response, TOKEN_BYTES_MAX, `The answer of the token server ${shownUrl(realm)}`);
    checkTokenStatus(response, realm);
    return `Bearer ${tokenOf(body, realm)}`;
  };

  const authorize = async (challenges: readonly Challenge[], asker: Asker, signal: AbortSignal): Promise<string> => {
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
    if (bearer !== undefined && identity.kind !== 'registryToken') return await fetchToken(bearer, asker, signal);
    if (identity.kind === 'password' && challenges.some(({ scheme }) => scheme === 'basic')) {
      return basic(identity.username, identity.password);
    }
    throw denied(
      identity.kind === 'anonymous'
        ? `${asker.url.host} wants credentials for ${repository} and was given ${given()}`
        : `${asker.url.host} does not accept the credentials for ${repository}`,
    );
  };

  return {
    current: () => {
      if (authorization !== null && !HEADER_SAFE.test(authorization))
        throw denied(`the registry token for ${repository} holds characters that cannot be sent, such as a line's end`);
      return authorization;
    },
    answer: async (challenges, asker, used, signal) => {
      // Another request has got a newer answer meanwhile.
      if (authorization !== null && authorization !== used) return authorization;
      fetching ??= authorize(challenges, asker, signal).finally(() => {
        fetching = null;
      });
      const fresh = await fetching;
      if (fresh === used) throw denied(`${asker.url.host} does not accept the credentials for ${repository}`);
      authorization = fresh;
      return fresh;
    },
  };
};
