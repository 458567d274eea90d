/**
 * scribe's own image service, for `scribe image load` and `scribe image pull`: the same calls as a kubelet's, through
 * the same engine, with the progress that CRI has no place for.
 */
import type { Readable } from 'node:stream';
import { PassThrough } from 'node:stream';
import { filter, type Observable } from 'rxjs';
import { FailureError } from '../../../domain/model/errors.ts';
import { formatImageReference, parseImageReference } from '../../../domain/image/reference.ts';
import type { ImagesDefinition, ImageProgress } from '../../../wire/scribe/v1/images.ts';
import type { Handlers } from '../context.ts';
import { checked, submit } from '../calls.ts';
import type { CriParts } from '../parts.ts';

export interface ImageTransfers {
  readonly newUploadId: () => string;
  readonly acceptUpload: (upload: string, stream: Readable) => void;
  readonly forgetUpload: (upload: string) => void;
  /** Of all that is pulled and loaded. */
  readonly progress: Observable<{
    readonly reference: string;
    readonly digest: string;
    readonly phase: string;
    readonly bytesDone: number;
    readonly bytesTotal: number;
  }>;
}

type Send = (progress: ImageProgress) => Promise<void>;

export function imagesService(parts: CriParts, transfers: ImageTransfers): Handlers<typeof ImagesDefinition> {
  /** Sends progress of `reference` while `work` runs, then the ids it gave. */
  async function withProgress(reference: string, send: Send, work: () => Promise<readonly string[]>): Promise<void> {
    const newest = newestOf(send);
    const following = transfers.progress
      .pipe(filter(({ reference: about }) => about === reference))
      .subscribe(({ digest, phase, bytesDone, bytesTotal }) =>
        newest.put({ digest, phase, bytesDone: String(bytesDone), bytesTotal: String(bytesTotal), imageIds: [] }),
      );
    try {
      const imageIds = await work();
      await newest.sent();
      await send({ digest: '', phase: 'done', bytesDone: '0', bytesTotal: '0', imageIds: [...imageIds] });
    } finally {
      following.unsubscribe();
    }
  }

  return {
    async load(requests, context, send) {
      const upload = transfers.newUploadId();
      const stream = new PassThrough();
      // Whoever reads it is told by the read itself; until somebody does, a client that goes away is no news.
      stream.on('error', () => undefined);
      transfers.acceptUpload(upload, stream);
      void feed(requests, stream);
      try {
        await withProgress(upload, send, async () => {
          const { outcome } = await submit(parts, 'LoadImages', () => ({ newId: upload }), context);
          return outcome.value.imageRefs ?? [];
        });
      } finally {
        transfers.forgetUpload(upload);
      }
    },
    async pull({ image, username, password }, context, send) {
      const reference = await checked(parts, 'PullImage', () => referenceOf(image), context);
      const credentials =
        username === ''
          ? null
          : parts.keepCredentials({
              username,
              password,
              auth: '',
              serverAddress: '',
              identityToken: '',
              registryToken: '',
            });
      await withProgress(reference, send, async () => {
        const { outcome } = await submit(parts, 'PullImage', () => ({ image: reference, credentials }), context);
        return outcome.value.imageRefs ?? [];
      });
    },
  };
}

/** Of each layer only what was said last waits for a client that reads slowly, or as long as it has an archive to send. */
function newestOf(send: Send): { readonly put: (progress: ImageProgress) => void; readonly sent: () => Promise<void> } {
  const waiting = new Map<string, ImageProgress>();
  let sending: Promise<void> | null = null;
  const sendWaiting = async (): Promise<void> => {
    for (const [digest, progress] of waiting) {
      waiting.delete(digest);
      await send(progress);
    }
    sending = null;
  };
  return {
    put(progress) {
      waiting.set(progress.digest, progress);
      sending ??= sendWaiting();
    },
    sent: () => sending ?? Promise.resolve(),
  };
}

function referenceOf(image: string): string {
  const parsed = parseImageReference(image);
  if (!parsed.ok) throw new FailureError('InvalidField', `image: ${parsed.failure}`);
  return formatImageReference(parsed.value);
}

/** Hands the chunks on as fast as they are taken; a client that goes away cuts the stream. Never rejects. */
async function feed(requests: AsyncIterable<{ readonly chunk: Uint8Array }>, stream: PassThrough): Promise<void> {
  try {
    for await (const { chunk } of requests) {
      if (stream.destroyed) return;
      if (!stream.write(chunk)) await drained(stream);
    }
    stream.end();
  } catch (error) {
    stream.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

/** Leaves no listener behind: an archive is waited for as often as it has chunks. */
function drained(stream: PassThrough): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    stream.once('drain', done).once('close', done);
  });
}
