/**
 * One blob from one server into a sink: goes on where earlier attempts ended, and takes no byte more than the blob has.
 * What a server does wrong is a RequestError that says whether the same server may do better from the start.
 */
import { FailureError } from '../../../domain/model/errors.ts';
import type { Descriptor } from '../documents.ts';
import { failureOf } from './failures.ts';
import { type HttpResponse, RequestError, shownUrl } from './http.ts';

/** Receives a blob; `offset` is how much of it there is already, from its beginning on. */
export interface BlobSink {
  readonly offset: () => number;
  /** All that is there, in whatever order it came. */
  readonly totalBytes: () => number;
  readonly missing: () => readonly { readonly from: number; readonly to: number }[];
  readonly write: (chunk: Buffer) => void;
  /** Takes what comes of the range that begins there. */
  readonly piece: (from: number) => { readonly write: (chunk: Buffer) => void; readonly end: () => void };
  /** What there is does not belong to what comes. */
  readonly restart: () => void;
  /** All bytes are there: verifies and keeps them. Throws FailureError when the digest is another. */
  readonly finish: () => Promise<void>;
}

/** What proxies and firewalls say to ranges that let the same request through without one. */
const REFUSALS: ReadonlySet<number> = new Set([400, 405, 406, 412, 501]);
const FORBIDDEN = 403;

/**
 * Whether the answer to the request of a range may be of the range alone, so that the whole is to be asked for. Somebody
 * who is forbidden everything keeps what there is of a blob.
 */
export const mayRefuseRanges = (status: number, keptBytes: number): boolean =>
  REFUSALS.has(status) || (status === FORBIDDEN && keptBytes === 0);

/** `open` asks the server at `url` for the blob, with the headers of a range or none. */
export const fillSink = async (
  url: URL,
  { digest, sizeBytes }: Pick<Descriptor, 'digest' | 'sizeBytes'>,
  sink: BlobSink,
  open: (range: Record<string, string>) => Promise<HttpResponse>,
): Promise<void> => {
  const from = sink.offset();
  if (from < sizeBytes) {
    const range: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` };
    const response = await open(range);
    if (response.status === 206 && !response.header('content-range').startsWith(`bytes ${from}-`)) {
      await response.discard();
      // It would be asked for the same again by every later attempt, if what there is stayed: all of it is another matter.
      sink.restart();
      throw new RequestError('RegistryFailed', `${shownUrl(url)} sent another range than was asked for`, {
        retryable: from > 0,
      });
    }
    if (response.status === 416) {
      await response.discard();
      sink.restart();
      throw new RequestError('RegistryFailed', `${shownUrl(url)} can't go on where the download ended`, {
        retryable: true,
      });
    }
    if (from > 0 && mayRefuseRanges(response.status, from)) {
      await response.discard();
      sink.restart();
      return await fillSink(url, { digest, sizeBytes }, sink, open);
    }
    if (response.status !== 200 && response.status !== 206) throw await failureOf(response, url);
    if (response.status === 200 && from > 0) sink.restart();
    for await (const chunk of response.body) {
      if (sink.offset() + chunk.length > sizeBytes) {
        sink.restart();
        throw new RequestError('ImageInvalid', `${shownUrl(url)} sent more than the ${sizeBytes} bytes of ${digest}`, {
          retryable: false,
        });
      }
      sink.write(chunk);
    }
    if (sink.offset() < sizeBytes) {
      throw new RequestError('RegistryFailed', `${shownUrl(url)} ended after ${sink.offset()} of ${sizeBytes} bytes`, {
        retryable: true,
      });
    }
  }
  try {
    await finishSink(url, sink, false);
  } catch (error) {
    if (from === 0 || !(error instanceof RequestError)) throw error;
    // Bytes of an earlier attempt may be what is wrong, of another server too, which would be asked first the next time
    // and send them again: from the start this server may well do it.
    await fillSink(url, { digest, sizeBytes }, sink, open);
  }
};

/** `retryable`: what is wrong may be right when all of it is fetched again. */
export const finishSink = async (url: URL, sink: BlobSink, retryable: boolean): Promise<void> => {
  try {
    await sink.finish();
  } catch (error) {
    sink.restart();
    if (!(error instanceof FailureError) || error.failure.reason !== 'ImageInvalid') throw error;
    throw new RequestError('ImageInvalid', `${shownUrl(url)} sent wrong content: ${error.failure.message}`, {
      retryable,
    });
  }
};
