/**
 * What one server has of manifests, indexes and configs: small things that are read whole and verified by their digests, and
 * what a tag stands for there. No other server is asked here, and nothing twice.
 */
import { isDigest } from '../../../domain/image/reference.ts';
import { sha256Of } from '../chain-ids.ts';
import { acceptedDocuments, type Descriptor, DOCUMENT_BYTES_MAX, MediaType } from '../documents.ts';
import type { EndpointClient } from './endpoint.ts';
import { failureOf, isRetryable, wrongDigest } from './failures.ts';
import type { Endpoint } from './hosts.ts';
import { readWhole, shownUrl } from './http.ts';

/** A manifest or index, verified. */
export interface FetchedDocument {
  readonly bytes: Buffer;
  /** What the registry calls it; "" when it does not say. */
  readonly mediaType: string;
}

export interface ResolvedReference {
  readonly digest: string;
  /** The document itself, when it was read. */
  readonly document: FetchedDocument | null;
}

/** All of it throws RequestError, or the signal's reason. */
export interface DocumentsAt {
  /** `isHere`: as of Registry.resolve. */
  readonly resolve: (
    endpoint: Endpoint,
    name: string,
    isHere: boolean,
    signal: AbortSignal,
  ) => Promise<ResolvedReference>;
  /** By its tag or its digest. */
  readonly read: (
    endpoint: Endpoint,
    name: string,
    signal: AbortSignal,
  ) => Promise<{ readonly digest: string; readonly document: FetchedDocument }>;
  readonly readConfig: (endpoint: Endpoint, descriptor: Descriptor, signal: AbortSignal) => Promise<Buffer>;
}

const publicHeaders = { accept: acceptedDocuments };

export const createDocumentsAt = ({ urlAt, ask }: EndpointClient): DocumentsAt => {
  /** null: HEAD does not tell. It has no body that could say why. */
  const askDigest = async (endpoint: Endpoint, name: string, signal: AbortSignal): Promise<string | null> => {
    const url = urlAt(endpoint, 'manifests', name);
    const head = await ask(endpoint, { method: 'HEAD', url, publicHeaders }, signal);
    await head.discard();
    const stated = isDigest(name) ? name : head.header('docker-content-digest');
    if (head.status === 200 && isDigest(stated)) return stated;
    if (isRetryable(head.status)) throw await failureOf(head, url);
    return null;
  };

  const read: DocumentsAt['read'] = async (endpoint, name, signal) => {
    const url = urlAt(endpoint, 'manifests', name);
    const response = await ask(endpoint, { method: 'GET', url, publicHeaders }, signal);
    if (response.status !== 200) throw await failureOf(response, url);
    const stated = isDigest(name) ? name : response.header('docker-content-digest');
    const bytes = await readWhole(response, DOCUMENT_BYTES_MAX, `the manifest at ${shownUrl(url)}`);
    const digest = sha256Of(bytes);
    if (isDigest(stated) && digest !== stated) throw wrongDigest(url, stated, digest);
    const mediaType = response.header('content-type').replace(/;.*$/, '').trim();
    return { digest, document: { bytes, mediaType } };
  };

  return {
    read,
    resolve: async (endpoint, name, isHere, signal) => {
      // Who may not be pulled from is asked for the digest alone; the document comes from another one then.
      const isAsked = isHere || !endpoint.capabilities.has('pull');
      const digest = isAsked ? await askDigest(endpoint, name, signal) : null;
      return digest === null ? await read(endpoint, name, signal) : { digest, document: null };
    },
    readConfig: async (endpoint, { digest }, signal) => {
      const url = urlAt(endpoint, 'blobs', digest);
      const response = await ask(endpoint, { method: 'GET', url, publicHeaders: { accept: MediaType.octets } }, signal);
      if (response.status !== 200) throw await failureOf(response, url);
      const bytes = await readWhole(response, DOCUMENT_BYTES_MAX, `the config at ${shownUrl(url)}`);
      const actual = sha256Of(bytes);
      if (actual !== digest) throw wrongDigest(url, digest, actual);
      return bytes;
    },
  };
};
