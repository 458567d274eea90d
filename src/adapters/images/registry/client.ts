/**
 * One repository of one registry, by way of all servers that stand for it (distribution-spec, "Pull"). Tags are
 * resolved only where the configuration trusts a server to; what has a digest may come from any of them, since it is
 * verified. Must not write to the disk: blobs are handed on piece by piece.
 */
import { isDigest, type ImageReference } from '../../../domain/image/reference.ts';
import { sha256Of } from '../chain-ids.ts';
import { acceptedDocuments, type Descriptor, DOCUMENT_BYTES_MAX } from '../documents.ts';
import type { RegistryCredentials } from '../types.ts';
import type { BlobSink } from './blob.ts';
import { createEndpointClient } from './endpoint.ts';
import { failureOf, isRetryable, wrongDigest } from './failures.ts';
import type { HostCapability } from './hosts-file.ts';
import { type Endpoint, isLoopback } from './hosts.ts';
import { type HttpClient, type HttpResponse, readWhole, refuseLocal, shownUrl } from './http.ts';
import { fillInRanges } from './ranges.ts';
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

const readDocument = async (
  response: HttpResponse,
  url: URL,
): Promise<FetchedDocument & { readonly digest: string }> => {
  if (response.status !== 200) throw await failureOf(response, url);
  const bytes = await readWhole(response, DOCUMENT_BYTES_MAX, `the manifest at ${shownUrl(url)}`);
  const mediaType = response.header('content-type').replace(/;.*$/, '').trim();
  return { bytes, mediaType, digest: sha256Of(bytes) };
};

const foreignServers = (descriptor: Descriptor): readonly BlobServer[] =>
  descriptor.urls
    .filter((url) => URL.canParse(url) && new URL(url).protocol === 'https:')
    .map((url) => ({ kind: 'foreign', url: new URL(url) }));

export const createRegistry = (options: {
  readonly reference: ImageReference;
  readonly endpoints: readonly Endpoint[];
  readonly credentials: RegistryCredentials | null;
  readonly mirrorCredentials: boolean;
  readonly http: HttpClient;
  readonly retry: RetryOptions;
}): Registry => {
  const { reference, endpoints, credentials, mirrorCredentials, http, retry } = options;
  const repository = reference.path;
  const { urlAt, ask } = createEndpointClient({ reference, credentials, mirrorCredentials, http });
  const get = (endpoint: Endpoint, url: URL, publicHeaders: Record<string, string>, signal: AbortSignal) =>
    ask(endpoint, { method: 'GET', url, publicHeaders }, signal);

  const withCapability = (capability: HostCapability): readonly Endpoint[] =>
    endpoints.filter((endpoint) => endpoint.capabilities.has(capability));

  const documentHeaders = { accept: acceptedDocuments };

  /** Some registries answer HEAD without the digest, or not at all: then the document itself is read. */
  const resolveAt = async (endpoint: Endpoint, name: string, signal: AbortSignal): Promise<ResolvedReference> => {
    const url = urlAt(endpoint, 'manifests', name);
    const head = await ask(endpoint, { method: 'HEAD', url, publicHeaders: documentHeaders }, signal);
    await head.discard();
    const stated = head.header('docker-content-digest');
    if (head.status === 200 && isDigest(name)) return { digest: name, document: null };
    if (head.status === 200 && isDigest(stated)) return { digest: stated, document: null };
    if (isRetryable(head.status)) throw await failureOf(head, url);
    // HEAD has no body that could say why not, so GET is asked for that too.
    const { digest, ...document } = await readDocument(await get(endpoint, url, documentHeaders, signal), url);
    if (isDigest(name) && digest !== name) throw wrongDigest(url, name, digest);
    return { digest, document };
  };

  const fetchDocumentAt = async (endpoint: Endpoint, digest: string, signal: AbortSignal): Promise<FetchedDocument> => {
    const url = urlAt(endpoint, 'manifests', digest);
    const { digest: actual, ...document } = await readDocument(await get(endpoint, url, documentHeaders, signal), url);
    if (actual !== digest) throw wrongDigest(url, digest, actual);
    return document;
  };

  const fetchConfigAt = async (endpoint: Endpoint, descriptor: Descriptor, signal: AbortSignal): Promise<Buffer> => {
    const url = urlAt(endpoint, 'blobs', descriptor.digest);
    const response = await get(endpoint, url, { accept: octets }, signal);
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
    if (server.kind === 'endpoint') return get(server.endpoint, url, publicHeaders, signal);
    const tls = { ca: [], clientPairs: [], skipVerify: false };
    const isNamedFromAfar = !isLoopback(reference.host);
    if (isNamedFromAfar) refuseLocal(url, 'a layer of the image');
    const common = { tls, dialTimeoutMs: DIAL_TIMEOUT_MS, isNamedFromAfar };
    return http.send({ ...common, url, method: 'GET', headers: {}, publicHeaders }, signal);
  };

  return {
    resolve: (signal) => {
      const name = reference.digest ?? reference.tag ?? '';
      // A digest can't be resolved to anything but itself, so any server that may be pulled from will do.
      const servers = withCapability(reference.digest === null ? 'resolve' : 'pull');
      return tryServers(servers, (endpoint) => resolveAt(endpoint, name, signal), {
        ...retry,
        what: `${repository}:${name}`,
        signal,
      });
    },
    fetchDocument: ({ digest }, signal) =>
      tryServers(withCapability('pull'), (endpoint) => fetchDocumentAt(endpoint, digest, signal), {
        ...retry,
        what: `manifest ${digest}`,
        signal,
      }),
    fetchConfig: (descriptor, signal) =>
      tryServers(withCapability('pull'), (endpoint) => fetchConfigAt(endpoint, descriptor, signal), {
        ...retry,
        what: `config ${descriptor.digest}`,
        signal,
      }),
    fetchBlob: (descriptor, sink, signal) => {
      const own: readonly BlobServer[] = withCapability('pull').map((endpoint) => ({ kind: 'endpoint', endpoint }));
      const servers = [...own, ...foreignServers(descriptor)];
      let highest = sink.totalBytes();
      /** Servers whose ranges were not what was asked for. */
      const distrusted = new Set<BlobServer>();
      const attempt = (server: BlobServer): Promise<void> => {
        const url = server.kind === 'endpoint' ? urlAt(server.endpoint, 'blobs', descriptor.digest) : server.url;
        const trust = { isTrusted: !distrusted.has(server), distrust: () => distrusted.add(server) };
        const open = (range: Record<string, string>, ended: AbortSignal) => openBlob(server, url, range, ended);
        return fillInRanges(url, descriptor, sink, trust, open, signal);
      };
      const gained = (): number => {
        highest = Math.max(highest, sink.totalBytes());
        return highest;
      };
      return tryServers(servers, attempt, { ...retry, what: `layer ${descriptor.digest}`, signal, gained });
    },
  };
};
