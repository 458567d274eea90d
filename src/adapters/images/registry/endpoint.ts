/**
 * Asking one endpoint for something of one repository: where that is, with which headers, and with which authorization,
 * which is found out from the endpoint's own challenge. Knows nothing of what is asked for.
 */
import type { ImageReference } from '../../../domain/image/reference.ts';
import type { RegistryCredentials } from '../types.ts';
import { type Authenticator, createAuthenticator, parseChallenges } from './auth.ts';
import { identityFor, whyAnonymous } from './credentials.ts';
import type { Endpoint } from './hosts.ts';
import type { HttpClient, HttpRequest, HttpResponse } from './http.ts';

export interface Asked extends Pick<HttpRequest, 'method' | 'url'> {
  /** Sent wherever redirects lead. */
  readonly publicHeaders: Record<string, string>;
}

export interface EndpointClient {
  readonly urlAt: (endpoint: Endpoint, kind: 'manifests' | 'blobs', name: string) => URL;
  /** Answers a challenge once; what it says then is the caller's. Throws RequestError, or the signal's reason. */
  readonly ask: (endpoint: Endpoint, asked: Asked, signal: AbortSignal) => Promise<HttpResponse>;
}

export const createEndpointClient = (options: {
  readonly reference: ImageReference;
  readonly credentials: RegistryCredentials | null;
  /** Whether credentials that name no server are shown to every endpoint. */
  readonly mirrorCredentials: boolean;
  readonly http: HttpClient;
}): EndpointClient => {
  const { reference, credentials, mirrorCredentials, http } = options;
  const repository = reference.path;
  const authenticators = new Map<Endpoint, Authenticator>();

  const authenticatorOf = (endpoint: Endpoint): Authenticator => {
    const known = authenticators.get(endpoint);
    if (known !== undefined) return known;
    const asked = [credentials, reference.host, endpoint.host, mirrorCredentials] as const;
    const identity = identityFor(...asked);
    const given = (): string => whyAnonymous(...asked);
    const made = createAuthenticator({ identity, given, repository, http, tls: endpoint.tls });
    authenticators.set(endpoint, made);
    return made;
  };

  return {
    urlAt: (endpoint, kind, name) => {
      const url = new URL(`${endpoint.base}/${repository}/${kind}/${name}`);
      if (endpoint.namespace !== null) url.searchParams.set('ns', endpoint.namespace);
      return url;
    },
    ask: async (endpoint, { method, url, publicHeaders }, signal) => {
      const authenticator = authenticatorOf(endpoint);
      const send = (authorization: string | null): Promise<HttpResponse> => {
        const configured = Object.fromEntries(
          Object.entries(endpoint.headers).map(([name, values]) => [name, [...values]]),
        );
        const headers = authorization === null ? configured : { ...configured, authorization };
        return http.send(
          { url, method, headers, publicHeaders, tls: endpoint.tls, dialTimeoutMs: endpoint.dialTimeoutMs },
          signal,
        );
      };
      const used = authenticator.current();
      const response = await send(used);
      if (response.status !== 401 || !response.isDirect) return response;
      const challenges = parseChallenges(response.header('www-authenticate'));
      await response.discard();
      return await send(await authenticator.answer(challenges, { url, isLocal: response.isLocal }, used, signal));
    },
  };
};
