/**
 * The stream of records from the server, and what is to be said of it: when it breaks, or nothing comes over it, not even
 * beats, it is asked for again where it left off, by and by, until the server is there again. Draws nothing.
 *
 *     open ──broken──> lost ──answered──> open        lost ──answered by another──> ended
 *     open ──said that it ends──> ended
 */
import { endUnanswered, Refused, reached } from './ask.ts';
import { BEAT_EVERY_MS, createFrameReader, type Frame } from './frames.ts';

export interface ConnectionEvents {
  readonly onFrames: (frames: readonly Frame[]) => void;
  /** The server is there again: what was asked for meanwhile has no answer. */
  readonly onAgain: () => void;
  /** What whoever looks at the page, or hears it, has to know of the connection; '' for nothing. */
  readonly onWords: (words: string, isGood: boolean) => void;
}

/** A beat may be late. */
const SILENT_MS_MAX = 2.5 * BEAT_EVERY_MS;
const WAIT_MS_MIN = 500;
const WAIT_MS_MAX = 15_000;
const TOLD_MS = 10_000;

const LOST =
  'Connection lost, trying again: scribe ui has ended, or the way to it is broken. What was read stays, and can be looked at.';
const ENDED = 'scribe ui has ended; what was read stays, and can be looked at.';
const AGAIN = 'Connected again: what was written meanwhile is here.';

const inSight = (): Promise<void> =>
  new Promise((resolve) => {
    if (!document.hidden) resolve();
    else document.addEventListener('visibilitychange', () => resolve(), { once: true });
  });

/** Twice as long as before; sooner when somebody looks at the page again, or the machine has a network again. */
const waited = (tries: number): Promise<void> =>
  new Promise((resolve) => {
    const sooner = new AbortController();
    const end = (): void => {
      clearTimeout(timer);
      sooner.abort();
      resolve();
    };
    const timer = setTimeout(end, Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** tries));
    document.addEventListener('visibilitychange', end, { signal: sooner.signal });
    addEventListener('online', end, { signal: sooner.signal });
  });

/** Ends all that is asked when nothing was heard for too long; from now on until it is released. */
const watchForSilence = (): { readonly heard: () => void; readonly release: () => void } => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const release = (): void => clearTimeout(timer);
  const heard = (): void => {
    release();
    timer = setTimeout(() => endUnanswered(`nothing came for ${SILENT_MS_MAX / 1000} s`), SILENT_MS_MAX);
  };
  heard();
  return { heard, release };
};

/** Frames behind the place that the page has come to, and those that come. Ends with the connection. */
async function* framesFrom(query: string, signal: AbortSignal, onOpen: () => void): AsyncGenerator<readonly Frame[]> {
  const { heard, release } = watchForSilence();
  try {
    const { body } = await reached(`records${query}`, signal);
    onOpen();
    heard();
    const read = createFrameReader();
    for await (const chunk of body ?? []) {
      heard();
      yield read(chunk);
    }
  } finally {
    release();
  }
}

/** A signal for as long as the page is in sight; call what it comes with when it is needed no more. */
const whileInSight = (): { readonly signal: AbortSignal; readonly release: () => void } => {
  const hidden = new AbortController();
  const leave = (): void => {
    if (document.hidden) hidden.abort();
  };
  document.addEventListener('visibilitychange', leave);
  return { signal: hidden.signal, release: () => document.removeEventListener('visibilitychange', leave) };
};

/**
 * Reads while the page is in sight: a browser has six connections to one server, and pages that nobody looks at must leave
 * them to others. Resolves when nothing follows, as the server says, and when another one answers, which has nothing to go on with.
 */
export const followRecords = async ({ onFrames, onAgain, onWords }: ConnectionEvents): Promise<void> => {
  /** How far it has read, as the server is told. */
  let query = '';
  let lanes = 0;
  /** Since it was lost; null while it is there. */
  let tries: number | null = null;
  let told: ReturnType<typeof setTimeout> | undefined;

  const open = (): void => {
    if (tries === null) return;
    tries = null;
    onWords(AGAIN, true);
    told = setTimeout(() => onWords('', true), TOLD_MS);
    onAgain();
  };

  for (;;) {
    await inSight();
    const { signal, release } = whileInSight();
    try {
      for await (const frames of framesFrom(query, signal, open)) {
        for (const { head } of frames) {
          lanes += head.lanes.length;
          query = `?through=${head.throughSeq}&lanes=${lanes}`;
        }
        if (frames.length > 0) onFrames(frames);
        const ended = frames.at(-1)?.head.ended;
        if (ended !== undefined) return onWords(`${ENDED} ${ended}`, false);
      }
    } catch (error) {
      if (error instanceof Refused) return onWords(`Nothing new comes: ${error.message}`, false);
    } finally {
      release();
    }
    if (signal.aborted) continue;
    clearTimeout(told);
    if (tries === null) onWords(LOST, false);
    await waited(tries ?? 0);
    tries = (tries ?? 0) + 1;
  }
};
