/** scribe's own image service over the socket: archives stream in, progress streams out, either side may break off. */
import assert from 'node:assert/strict';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { type ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import { type ObservedValueOf, Subject } from 'rxjs';
import { type ImageTransfers, imagesService } from '../../../src/adapters/cri/services/scribe-images.ts';
import { serviceOf } from '../../../src/adapters/cri/service.ts';
import { ImageProgress, ImagesDefinition, LoadRequest } from '../../../src/wire/scribe/v1/images.ts';
import { FailureError, GrpcCode } from '../../../src/domain/model/errors.ts';
import type { ImageContent } from '../../../src/domain/model/image-content.ts';
import type { Owner } from '../../support/cleanup.ts';
import { image, type RawClient, rawClient, startEngine, startServer } from './support.ts';

type Load = ClientDuplexStream<LoadRequest, ImageProgress>;

const openLoad = ({ grpc }: RawClient): Load =>
  grpc.makeBidiStreamRequest(
    `/${ImagesDefinition.fullName}/${ImagesDefinition.methods.load.name}`,
    (chunk: LoadRequest) => Buffer.from(LoadRequest.encode(chunk).finish()),
    (bytes) => ImageProgress.decode(bytes),
    new Metadata(),
    { deadline: Date.now() + 10_000 },
  );

/** All progress of a load, and the code it ended with. */
const outcomeOf = (load: Load): Promise<{ readonly progress: ImageProgress[]; readonly code: number }> =>
  new Promise((resolve) => {
    const progress: ImageProgress[] = [];
    load.on('data', (message: ImageProgress) => void progress.push(message));
    load.on('error', () => undefined);
    load.on('status', ({ code }: { readonly code: number }) => resolve({ progress, code }));
  });

type Hear = (progress: ObservedValueOf<ImageTransfers['progress']>) => void;
type Perform = (stream: Readable, hearing: Hear) => Promise<readonly ImageContent[]>;

/** A server whose LoadImages is `perform`, with the streams it has accepted. */
const serve = async (owner: Owner, perform: Perform): Promise<{ client: RawClient; forgotten: string[] }> => {
  const uploads = new Map<string, Readable>();
  const forgotten: string[] = [];
  const progress = new Subject<Parameters<Hear>[0]>();
  const hearing: Hear = (made) => progress.next(made);
  const { engine, view } = await startEngine(owner, {
    async LoadImages({ upload }) {
      const stream = uploads.get(upload);
      assert.ok(stream !== undefined, 'the stream is kept before the call is taken');
      hearing({ reference: upload, digest: 'sha256:d', phase: 'unpacking', bytesDone: 1, bytesTotal: 2 });
      hearing({ reference: 'another', digest: 'sha256:e', phase: 'unpacking', bytesDone: 1, bytesTotal: 2 });
      return { images: await perform(stream, hearing) };
    },
  });
  const transfers: ImageTransfers = {
    newUploadId: () => 'upload',
    acceptUpload: (upload, stream) => void uploads.set(upload, stream),
    forgetUpload(upload) {
      forgotten.push(upload);
      uploads.get(upload)?.destroy();
    },
    progress,
  };
  const { socket } = await startServer(owner, {
    view,
    submit: engine.call,
    services: (parts, options) => [serviceOf(ImagesDefinition, imagesService(parts, transfers), options)],
  });
  return { client: rawClient(owner, socket), forgotten };
};

const send = (load: Load, text: string): void => void load.write({ chunk: Buffer.from(text) });

describe('scribe.v1.Images', { timeout: 20_000 }, () => {
  it('hands an archive on whole and answers with progress of this load and its ids', async (t) => {
    let received = '';
    const { client, forgotten } = await serve(t, async (stream) => {
      received = (await buffer(stream)).toString();
      return [image('sha256:loaded').content];
    });
    const load = openLoad(client);
    const ended = outcomeOf(load);
    send(load, 'abc');
    send(load, 'def');
    load.end();
    const { progress, code } = await ended;
    assert.equal(code, GrpcCode.OK);
    assert.equal(received, 'abcdef');
    assert.deepEqual(
      progress.map(({ phase, digest, imageIds }) => [phase, digest, imageIds]),
      [
        ['unpacking', 'sha256:d', []],
        ['done', '', ['sha256:loaded']],
      ],
    );
    assert.deepEqual(forgotten, ['upload']);
  });

  it('gathers no listeners while it waits, for the archive to be taken or for the client to read', async (t) => {
    const warnings: Error[] = [];
    const hear = (warning: Error): void => void warnings.push(warning);
    process.on('warning', hear);
    t.after(() => process.off('warning', hear));
    const layers = Array.from({ length: 40 }, (_, index) => `sha256:${String(index)}`);
    const { client } = await serve(t, async (stream, hearing) => {
      for (const digest of layers) {
        const piece = { reference: 'upload', digest, bytesTotal: 1 };
        // Far more than the connection takes at once.
        for (let bytesDone = 0; bytesDone < 500; bytesDone += 1) hearing({ ...piece, phase: 'unpacking', bytesDone });
        hearing({ ...piece, phase: 'done', bytesDone: 1 });
      }
      await buffer(stream);
      return [image('sha256:loaded').content];
    });
    const load = openLoad(client);
    const ended = outcomeOf(load);
    for (let chunks = 0; chunks < 40; chunks += 1) send(load, 'x'.repeat(65_536));
    load.end();
    const { progress } = await ended;
    assert.deepEqual(
      warnings.map(({ message }) => message),
      [],
    );
    assert.deepEqual(progress.at(-1)?.imageIds, ['sha256:loaded']);
    for (const digest of layers)
      assert.equal(progress.findLast((said) => said.digest === digest)?.phase, 'done', digest);
  });

  it('tells of a failure at once, though the client has more to send', async (t) => {
    const { client } = await serve(t, () => Promise.reject(new FailureError('ImageInvalid', 'It is no archive.')));
    const load = openLoad(client);
    const ended = outcomeOf(load);
    send(load, 'abc');
    assert.equal((await ended).code, GrpcCode.INVALID_ARGUMENT);
  });

  it('is not held up by an archive with more in it than is read', async (t) => {
    const { client } = await serve(t, async () => Promise.resolve([image('sha256:loaded').content]));
    const load = openLoad(client);
    const ended = outcomeOf(load);
    send(load, 'x'.repeat(1_000_000));
    const { progress, code } = await ended;
    assert.equal(code, GrpcCode.OK);
    assert.deepEqual(progress.at(-1)?.imageIds, ['sha256:loaded']);
  });

  it('cuts the stream of a client that goes away, whether or not anybody reads it', async (t) => {
    let cut: (error: unknown) => void = () => undefined;
    const whenCut = new Promise((resolve) => {
      cut = resolve;
    });
    let reads = false;
    const { client } = await serve(t, async (stream) => {
      if (reads) await buffer(stream).catch(cut);
      else stream.once('close', cut);
      throw new FailureError('Cancelled', 'The client has gone.');
    });
    for (reads of [false, true]) {
      const load = openLoad(client);
      const ended = outcomeOf(load);
      send(load, 'abc');
      await new Promise((resolve) => load.once('data', resolve));
      load.cancel();
      assert.equal((await ended).code, GrpcCode.CANCELLED);
      await whenCut;
    }
  });
});
