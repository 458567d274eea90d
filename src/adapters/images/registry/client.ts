/**
 * One repository of one registry, by way of all servers that stand for it (distribution-spec, "Pull"). Tags are
 * resolved only where the configuration trusts a server to; what has a digest may come from any of them, since it is
 * verified. Must not write to the disk: blobs are handed on piece by piece.
 */
import { formatImageReference, type ImageReference } from '../../../domain/image/reference.ts';
import { type Descriptor, MediaType } from '../documents.ts';
import type { RegistryCredentials } from '../types.ts';
import type { BlobSink } from './blob.ts';
import { createDocumentsAt, type FetchedDocument, type ResolvedReference } from './documents-at.ts';
import { createEndpointClient } from './endpoint.ts';
import type { HostCapability } from './hosts-file.ts';
import { type Endpoint, isLoopback } from './hosts.ts';
import { type HttpClient, type HttpResponse, refuseLocal } from './http.ts';
import { fillInRanges } from './ranges.ts';
import { type RetryOptions, tryServers } from './retry.ts';

export interface Registry {
  /**
   * The digest that the reference stands for now. Asks even for a digest, so that access is checked. `isHere`: what it stood for
   * last is in the store, so that its digest will most likely do; otherwise the document is asked for at once.
   */
  readonly resolve: (isHere: boolean, signal: AbortSignal) => Promise<ResolvedReference>;
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
  const client = createEndpointClient({ reference, credentials, mirrorCredentials, http });
  const documents = createDocumentsAt(client);

  const withCapability = (capability: HostCapability): readonly Endpoint[] =>
    endpoints.filter((endpoint) => endpoint.capabilities.has(capability));

  const openBlob = (
    server: BlobServer,
    url: URL,
    range: Record<string, string>,
    signal: AbortSignal,
  ): Promise<HttpResponse> => {
    const publicHeaders = { accept: MediaType.octets, ...range };
    if (server.kind === 'endpoint') return client.ask(server.endpoint, { method: 'GET', url, publicHeaders }, signal);
    const tls = { ca: [], clientPairs: [], skipVerify: false };
    const isNamedFromAfar = !isLoopback(reference.host);
    if (isNamedFromAfar) refuseLocal(url, 'a layer of the image');
    const common = { tls, dialTimeoutMs: DIAL_TIMEOUT_MS, isNamedFromAfar };
    return http.send({ ...common, url, method: 'GET', headers: {}, publicHeaders }, signal);
  };

  return {
    resolve: (isHere, signal) => {
      const name = reference.digest ?? reference.tag ?? '';
      // A digest can't be resolved to anything but itself, so any server that may be pulled from will do.
      const servers = withCapability(reference.digest === null ? 'resolve' : 'pull');
      return tryServers(servers, (endpoint) => documents.resolve(endpoint, name, isHere, signal), {
        ...retry,
        what: formatImageReference(reference),
        signal,
      });
    },
    fetchDocument: async ({ digest }, signal) => {
      const read = (endpoint: Endpoint) => documents.read(endpoint, digest, signal);
      const told = { ...retry, what: `manifest ${digest}`, signal };
      return (await tryServers(withCapability('pull'), read, told)).document;
    },
    fetchConfig: (descriptor, signal) =>
      tryServers(withCapability('pull'), (endpoint) => documents.readConfig(endpoint, descriptor, signal), {
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
        const url = server.kind === 'endpoint' ? client.urlAt(server.endpoint, 'blobs', descriptor.digest) : server.url;
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
