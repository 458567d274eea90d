/**
 * A registry that misbehaves on demand: serves images honestly until a test's interceptor takes a request over.
 * Remembers every request, so that tests can see what was sent where.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { join } from 'node:path';
import { type Owner, onCleanup } from '../cleanup.ts';
import { runOk } from '../process.ts';
import { tempDir } from '../temp-dir.ts';
import type { BuiltImage } from './build.ts';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Answers the request itself and says true, or leaves it to the server. */
export type Interceptor = (request: SeenRequest, response: ServerResponse) => boolean | Promise<boolean>;

export interface FaultServer {
  /** 127.0.0.1:port, or localhost:port with TLS. */
  readonly host: string;
  readonly base: string;
  readonly requests: SeenRequest[];
  readonly serve: (
    repository: string,
    tag: string,
    image: Pick<BuiltImage, 'manifest' | 'manifestType' | 'digest'> & Partial<BuiltImage>,
  ) => void;
  readonly intercept: (interceptor: Interceptor) => void;
  /** Requests for this blob's or manifest's digest. */
  readonly requestsFor: (name: string) => readonly SeenRequest[];
}

export interface Certificates {
  readonly caPath: string;
  readonly keyPath: string;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** A certificate for localhost, signed by itself. */
export const makeCertificates = async (owner: Owner): Promise<Certificates> => {
  const directory = await tempDir(owner);
  const [caPath, keyPath] = [join(directory, 'ca.pem'), join(directory, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  await runOk(['openssl', 'req', '-x509', ...kind, ...subject, '-keyout', keyPath, '-out', caPath]);
  return { caPath, keyPath, cert: await readFile(caPath), key: await readFile(keyPath) };
};

const readBody = async (request: IncomingMessage): Promise<string> =>
  Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString();

/** The blob, or the part of it that the Range header asks for. */
export const sendBlob = (request: SeenRequest, response: ServerResponse, bytes: Buffer): void => {
  const [, from, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const start = Number(from ?? 0);
  const end = last === '' ? bytes.length : Number(last) + 1;
  const headers = { 'content-length': end - start };
  if (from === undefined) response.writeHead(200, headers);
  else response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` });
  response.end(bytes.subarray(start, end));
};

const tlsOptions = ({ cert, key }: Certificates, wantsClientCertificate: boolean): ServerOptions => ({
  cert,
  key,
  ...(wantsClientCertificate ? { ca: cert, requestCert: true, rejectUnauthorized: true } : {}),
});

/** Speaks TLS with `certificates`, to clients with one that is signed by these if `wantsClientCertificate`. */
export const startFaultServer = async (
  owner: Owner,
  certificates?: Certificates,
  wantsClientCertificate = false,
): Promise<FaultServer> => {
  const requests: SeenRequest[] = [];
  const manifests = new Map<string, { readonly bytes: Buffer; readonly type: string; readonly digest: string }>();
  const blobs = new Map<string, Buffer>();
  let interceptor: Interceptor = () => false;

  const answer = (request: SeenRequest, response: ServerResponse): void => {
    const [, repository = '', kind, name = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(request.path) ?? [];
    const manifest = kind === 'manifests' ? manifests.get(`${repository} ${name}`) : undefined;
    const blob = kind === 'blobs' ? blobs.get(name) : undefined;
    if (manifest !== undefined) {
      const { bytes, type, digest } = manifest;
      response.writeHead(200, {
        'content-type': type,
        'content-length': bytes.length,
        'docker-content-digest': digest,
      });
      response.end(request.method === 'HEAD' ? undefined : bytes);
    } else if (blob !== undefined) {
      sendBlob(request, response, blob);
    } else {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
    }
  };

  const listener: RequestListener = (incoming, response) => {
    const take = async (): Promise<void> => {
      const url = new URL(incoming.url ?? '/', 'http://test');
      const body = await readBody(incoming);
      const { method = '', headers } = incoming;
      const request = { method, path: url.pathname, query: url.searchParams, headers, body };
      requests.push(request);
      if (!(await interceptor(request, response))) answer(request, response);
    };
    take().catch(() => response.destroy());
  };

  const server: Server =
    certificates === undefined
      ? createServer(listener)
      : createTlsServer(tlsOptions(certificates, wantsClientCertificate), listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onCleanup(owner, async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const host = `${certificates === undefined ? '127.0.0.1' : 'localhost'}:${address.port}`;
  return {
    host,
    base: `${certificates === undefined ? 'http' : 'https'}://${host}`,
    requests,
    intercept: (next) => {
      interceptor = next;
    },
    requestsFor: (name) => requests.filter(({ path }) => path.endsWith(`/${name}`)),
    serve: (repository, tag, image) => {
      const manifest = { bytes: image.manifest, type: image.manifestType, digest: image.digest };
      manifests.set(`${repository} ${tag}`, manifest);
      manifests.set(`${repository} ${image.digest}`, manifest);
      for (const [digest, bytes] of image.blobs ?? []) blobs.set(digest, bytes);
    },
  };
};
