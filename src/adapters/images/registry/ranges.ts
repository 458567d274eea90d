/**
 * A large blob from one server in ranges, several side by side: one connection seldom has all of the bandwidth there is. Asks
 * for what is missing, wherever it is missing. A server that knows no ranges is asked for the whole as ever; one that sends
 * what was not asked for is not asked for ranges of this blob again, and of what it sent nothing is kept.
 */
import type { Descriptor } from '../documents.ts';
import { type BlobSink, fillSink, finishSink, mayRefuseRanges } from './blob.ts';
import { failureOf } from './failures.ts';
import { type HttpResponse, RequestError, shownUrl } from './http.ts';

/** Smaller blobs gain little, and cost a registry more requests. */
export const RANGED_BYTES_MIN = 64 * 1024 * 1024;
export const RANGE_BYTES = 16 * 1024 * 1024;
const RANGES_AT_ONCE = 4;

interface Range {
  readonly from: number;
  /** The byte after the last. */
  readonly to: number;
}

type Open = (headers: Record<string, string>, signal: AbortSignal) => Promise<HttpResponse>;

/** Cut where ranges of the whole blob would be, so that attempts ask for the same. */
export const rangesOf = (missing: readonly Range[]): readonly Range[] =>
  missing.flatMap(({ from, to }) => {
    const ranges: Range[] = [];
    for (let at = from; at < to; ) {
      const next = Math.min(to, (Math.floor(at / RANGE_BYTES) + 1) * RANGE_BYTES);
      ranges.push({ from: at, to: next });
      at = next;
    }
    return ranges;
  });

/** It sent other bytes than were asked for, so that nothing of what it sent is to be trusted. */
class RangeLie extends RequestError {}

const openRange = (open: Open, { from, to }: Range, signal: AbortSignal): Promise<HttpResponse> =>
  open({ range: `bytes=${from}-${to - 1}` }, signal);

/** Takes the body of an answer to the request of a range. Throws RequestError. */
const takeRange = async (
  url: URL,
  response: HttpResponse,
  { from, to }: Range,
  sizeBytes: number,
  sink: BlobSink,
): Promise<void> => {
  const lie = (what: string): RangeLie =>
    new RangeLie('RegistryFailed', `${shownUrl(url)} sent ${what}`, { retryable: true });
  if (response.status !== 206) {
    if (response.status !== 200 && response.status !== 416) throw await failureOf(response, url);
    await response.discard();
    throw lie(`no range of ${sizeBytes} bytes when it was asked for one`);
  }
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.header('content-range')) ?? [];
  if (Number(first) !== from || Number(last) !== to - 1 || (total !== '*' && Number(total) !== sizeBytes)) {
    await response.discard();
    throw lie('another range than was asked for');
  }
  const piece = sink.piece(from);
  let at = from;
  try {
    for await (const chunk of response.body) {
      if (at + chunk.length > to) throw lie('more than the range that was asked for');
      piece.write(chunk);
      at += chunk.length;
    }
  } finally {
    piece.end();
  }
  if (at === to) return;
  throw new RequestError('RegistryFailed', `${shownUrl(url)} ended after ${at} of ${to} bytes`, { retryable: true });
};

/** Runs so many at a time; when one fails the others are ended, and it fails when they have. */
const sideBySide = async (
  ranges: readonly Range[],
  signal: AbortSignal,
  work: (range: Range, signal: AbortSignal) => Promise<void>,
): Promise<void> => {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const queue = ranges.values();
  const worker = async (): Promise<void> => {
    for (const range of queue) {
      either.throwIfAborted();
      await work(range, either);
    }
  };
  const workers = Array.from({ length: RANGES_AT_ONCE }, async () => {
    try {
      await worker();
    } catch (error) {
      // Those that come after it fail because of it.
      failed.abort(error);
    }
  });
  await Promise.all(workers);
  signal.throwIfAborted();
  if (failed.signal.aborted) throw failed.signal.reason as Error;
};

/**
 * Fills the sink. `isTrusted` says whether the server may be asked for ranges, `distrust` that it may not be asked again.
 * Throws RequestError, or the signal's reason.
 */
export const fillInRanges = async (
  url: URL,
  descriptor: Pick<Descriptor, 'digest' | 'sizeBytes'>,
  sink: BlobSink,
  trust: { readonly isTrusted: boolean; readonly distrust: () => void },
  open: Open,
  signal: AbortSignal,
): Promise<void> => {
  const { sizeBytes } = descriptor;
  if (!trust.isTrusted || sizeBytes < RANGED_BYTES_MIN) {
    // What came in ranges is not gone on with: some of it lies behind what is missing.
    if (sink.totalBytes() > sink.offset()) sink.restart();
    return await fillSink(url, descriptor, sink, (headers) => open(headers, signal));
  }
  const [first, ...others] = rangesOf(sink.missing());
  try {
    if (first !== undefined) {
      const response = await openRange(open, first, signal);
      const isRefused = mayRefuseRanges(response.status, sink.totalBytes());
      if (response.status === 200 || isRefused) {
        // It knows no ranges and sends the whole, or somebody in front of it lets no range through.
        trust.distrust();
        sink.restart();
        if (isRefused) await response.discard();
        let answer = isRefused ? null : response;
        return await fillSink(url, descriptor, sink, async (headers) => {
          const whole = answer ?? (await open(headers, signal));
          answer = null;
          return whole;
        });
      }
      const opened = new Map([[first, response]]);
      await sideBySide([first, ...others], signal, async (range, ended) => {
        const answer = opened.get(range) ?? (await openRange(open, range, ended));
        await takeRange(url, answer, range, sizeBytes, sink);
      });
    }
  } catch (error) {
    if (error instanceof RangeLie) {
      trust.distrust();
      sink.restart();
    }
    throw error;
  }
  try {
    await finishSink(url, sink, true);
  } catch (error) {
    trust.distrust();
    throw error;
  }
};
