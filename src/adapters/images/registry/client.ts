/**
 * One repository of one registry, by way of all servers that stand for it (distribution-spec, "Pull"). Tags are
 * resolved only where the configuration trusts a server to; what has a digest may come from any of them, since it is
 * verified. Must not write to the disk: blobs are handed on piece by piece.
 */
import { FailureError } from '../../../domain/errors.ts';
import { isDigest, type ImageReference } from '../../../domain/image/reference.ts';
import { sha256Of } from '../chain-ids.ts';
import { acceptedDocuments, type Descriptor, DOCUMENT_BYTES_MAX } from '../documents.ts';
import type { RegistryCredentials } from '../types.ts';
import { type Authenticator, createAuthenticator, parseChallenges } from './auth.ts';
import { identityFor } from './credentials.ts';
import { failureOf, isRetryable, wrongDigest } from './failures.ts';
import type { Endpoint, HostCapability } from './hosts.ts';
import { type HttpClient, type HttpResponse, readWhole, RequestError, shownUrl } from './http.ts';
import { type RetryOptions, tryServers } from './retry.ts';

/** A manifest or index, verified. */
export interface FetchedDocument {
  readonly bytes: Buffer;
  /** What the registry calls it; "" when it does not say. */
  readonly mediaType: string;
}

export interface ResolvedReference {
  readonly digest: string;
  /** The document itself, when it had to be read to know its digest. */
  readonly document: FetchedDocument | null;
}

/** Receives a blob; `offset` is how much of it there is already. */
export interface BlobSink {
  readonly offset: () => number;
  readonly write: (chunk: Buffer) => void;
  /** What there is does not belong to what comes. */
  readonly restart: () => void;
  /** All bytes are there: verifies and keeps them. Throws FailureError when the digest is another. */
  readonly finish: () => Promise<void>;
}

export interface Registry {
  /** The digest that the reference stands for now. Asks even for a digest, so that access is checked. */
  readonly resolve: (signal: AbortSignal) => Promise<ResolvedReference>;
  readonly fetchDocument: (descriptor: Pick<Descriptor, 'digest'>, signal: AbortSignal) => Promise<FetchedDocument>;
  /** A small blob, whole and verified: the image config. */
  readonly fetchConfig: (descriptor: Descriptor, signal: AbortSignal) => Promise<Buffer>;
  /** Fills the sink with the blob, going on where earlier attempts ended. */
  readonly fetchBlob: (descriptor: Descriptor, sink: BlobSink, signal: AbortSignal) => Promise<void>;
}

/** A server for blobs: an endpoint of the registry, or a foreign address that gets neither credentials nor headers. */
type BlobServer =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  | { readonly kind: 'foreign'; readonly url: URL };

const DIAL_TIMEOUT_MS = 30_000;
const octets = 'application/octet-stream';

export const createRegistry = (options: {
  readonly reference: ImageReference;
  readonly endpoints: readonly Endpoint[];
  readonly credentials: RegistryCredentials | null;
  readonly http: HttpClient;
  readonly retry: RetryOptions;
}): Registry => {
  const { reference, endpoints, credentials, http, retry } = options;
  const repository = reference.path;
  const authenticators = new Map<Endpoint, Authenticator>();

  const authenticatorOf = (endpoint: Endpoint): Authenticator => {
    const known = authenticators.get(endpoint);
    if (known !== undefined) return known;
    const identity = identityFor(credentials, reference.host, endpoint.host);
    const made = createAuthenticator({ identity, repository, http, tls: endpoint.tls });
    authenticators.set(endpoint, made);
    return made;
  };

  const urlAt = (endpoint: Endpoint, kind: 'manifests' | 'blobs', name: string): URL => {
    const url = new URL(`${endpoint.base}/${repository}/${kind}/${name}`);
    if (endpoint.namespace !== null) url.searchParams.set('ns', endpoint.namespace);
    return url;
  };

  const ask = async (
    endpoint: Endpoint,
    method: 'GET' | 'HEAD',
    url: URL,
    publicHeaders: Record<string, string>,
    signal: AbortSignal,
  ): Promise<HttpResponse> => {
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
    return await send(await authenticator.answer(challenges, url, used, signal));
  };

  const withCapability = (capability: HostCapability): readonly Endpoint[] =>
    endpoints.filter((endpoint) => endpoint.capabilities.has(capability));

  const readDocument = async (
    response: HttpResponse,
    url: URL,
  ): Promise<FetchedDocument & { readonly digest: string }> => {
    if (response.status !== 200) throw await failureOf(response, url);
    const bytes = await readWhole(response, DOCUMENT_BYTES_MAX, `the manifest at ${shownUrl(url)}`);
    const mediaType = response.header('content-type').replace(/;.*$/, '').trim();
    return { bytes, mediaType, digest: sha256Of(bytes) };
  };

  const documentHeaders = { accept: acceptedDocuments };

  /** Some registries answer HEAD without the digest, or not at all: then the document itself is read. */
  const resolveAt = async (endpoint: Endpoint, name: string, signal: AbortSignal): Promise<ResolvedReference> => {
    const url = urlAt(endpoint, 'manifests', name);
    const head = await ask(endpoint, 'HEAD', url, documentHeaders, signal);
    await head.discard();
    const stated = head.header('docker-content-digest');
    if (head.status === 200 && isDigest(name)) return { digest: name, document: null };
    if (head.status === 200 && isDigest(stated)) return { digest: stated, document: null };
    if (isRetryable(head.status)) throw await failureOf(head, url);
    // HEAD has no body that could say why not, so GET is asked for that too.
    const { digest, ...document } = await readDocument(await ask(endpoint, 'GET', url, documentHeaders, signal), url);
    if (isDigest(name) && digest !== name) throw wrongDigest(url, name, digest);
    return { digest, document };
  };

  const fetchDocumentAt = async (endpoint: Endpoint, digest: string, signal: AbortSignal): Promise<FetchedDocument> => {
    const url = urlAt(endpoint, 'manifests', digest);
    const { digest: actual, ...document } = await readDocument(
      await ask(endpoint, 'GET', url, documentHeaders, signal),
      url,
    );
    if (actual !== digest) throw wrongDigest(url, digest, actual);
    return document;
  };

  const fetchConfigAt = async (endpoint: Endpoint, descriptor: Descriptor, signal: AbortSignal): Promise<Buffer> => {
    const url = urlAt(endpoint, 'blobs', descriptor.digest);
    const response = await ask(endpoint, 'GET', url, { accept: octets }, signal);
    if (response.status !== 200) throw await failureOf(response, url);
    const bytes = await readWhole(response, DOCUMENT_BYTES_MAX, `the config at ${shownUrl(url)}`);
    const actual = sha256Of(bytes);
    if (actual !== descriptor.digest) throw wrongDigest(url, descriptor.digest, actual);
    return bytes;
  };

  const openBlob = (
    server: BlobServer,
    url: URL,
    range: Record<string, string>,
    signal: AbortSignal,
  ): Promise<HttpResponse> => {
    const publicHeaders = { accept: octets, ...range };
    if (server.kind === 'endpoint') return ask(server.endpoint, 'GET', url, publicHeaders, signal);
    const tls = { ca: [], clientPairs: [], skipVerify: false };
    return http.send({ url, method: 'GET', headers: {}, publicHeaders, tls, dialTimeoutMs: DIAL_TIMEOUT_MS }, signal);
  };

  const fillSink = async (
    server: BlobServer,
    descriptor: Descriptor,
    sink: BlobSink,
    signal: AbortSignal,
  ): Promise<void> => {
    const url = server.kind === 'endpoint' ? urlAt(server.endpoint, 'blobs', descriptor.digest) : server.url;
    const from = sink.offset();
    if (from < descriptor.sizeBytes) {
      const range: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` };
      const response = await openBlob(server, url, range, signal);
      if (response.status === 206 && !response.header('content-range').startsWith(`bytes ${from}-`)) {
        await response.discard();
        throw new RequestError('RegistryFailed', `${shownUrl(url)} sent another range than was asked for`, {
          retryable: false,
        });
      }
      if (response.status === 416) {
        await response.discard();
        sink.restart();
        throw new RequestError('RegistryFailed', `${shownUrl(url)} can't go on where the download ended`, {
          retryable: true,
        });
      }
      if (response.status !== 200 && response.status !== 206) throw await failureOf(response, url);
      if (response.status === 200 && from > 0) sink.restart();
      for await (const chunk of response.body) {
        if (sink.offset() + chunk.length > descriptor.sizeBytes) {
          sink.restart();
          throw new RequestError(
            'ImageInvalid',
            `${shownUrl(url)} sent more than the ${descriptor.sizeBytes} bytes of ${descriptor.digest}`,
            {
              retryable: false,
            },
          );
        }
        sink.write(chunk);
      }
      if (sink.offset() < descriptor.sizeBytes) {
        throw new RequestError(
          'RegistryFailed',
          `${shownUrl(url)} ended after ${sink.offset()} of ${descriptor.sizeBytes} bytes`,
          {
            retryable: true,
          },
        );
      }
    }
    try {
      await sink.finish();
    } catch (error) {
      sink.restart();
      // Bytes of an earlier attempt may be what is wrong: from the start this server may well do it.
      const isMixed = from > 0;
      if (!(error instanceof FailureError) || error.failure.reason !== 'ImageInvalid') throw error;
      throw new RequestError('ImageInvalid', `${shownUrl(url)} sent wrong content: ${error.failure.message}`, {
        retryable: isMixed,
      });
    }
  };

  const foreignServers = (descriptor: Descriptor): readonly BlobServer[] =>
    descriptor.urls
      .filter((url) => URL.canParse(url) && new URL(url).protocol === 'https:')
      .map((url) => ({ kind: 'foreign', url: new URL(url) }));

  return {
    resolve: (signal) => {
      const name = reference.digest ?? reference.tag ?? '';
      // A digest can't be resolved to anything but itself, so any server that may be pulled from will do.
      const servers = withCapability(reference.digest === null ? 'resolve' : 'pull');
      return tryServers(servers, `${repository}:${name}`, retry, signal, (endpoint) =>
        resolveAt(endpoint, name, signal),
      );
    },
    fetchDocument: ({ digest }, signal) =>
      tryServers(withCapability('pull'), `manifest ${digest}`, retry, signal, (endpoint) =>
        fetchDocumentAt(endpoint, digest, signal),
      ),
    fetchConfig: (descriptor, signal) =>
      tryServers(withCapability('pull'), `config ${descriptor.digest}`, retry, signal, (endpoint) =>
        fetchConfigAt(endpoint, descriptor, signal),
      ),
    fetchBlob: (descriptor, sink, signal) => {
      const own: readonly BlobServer[] = withCapability('pull').map((endpoint) => ({ kind: 'endpoint', endpoint }));
      const servers = [...own, ...foreignServers(descriptor)];
      let highest = sink.offset();
      return tryServers(
        servers,
        `layer ${descriptor.digest}`,
        retry,
        signal,
        (server) => fillSink(server, descriptor, sink, signal),
        () => {
          highest = Math.max(highest, sink.offset());
          return highest;
        },
      );
    },
  };
};
