/**
 * Which bytes of a file that is downloaded in ranges are there, kept in a file beside it, so that a download that was killed is
 * gone on with. A line is where a stretch begins and where it ends; lines are only added, and one that is cut off says nothing.
 * Pure but for that file: what the bytes are worth, a digest says.
 */
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { errorCodeOf } from '../../platform/error-code.ts';

/** From the first byte to the one before `to`. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface Pieces {
  /** Has the file say what is there. To be called before anything is written that leaves a gap. */
  readonly begin: () => void;
  /** What is there is remembered at once, and written down by `note`. */
  readonly add: (stretch: Stretch) => void;
  readonly note: (stretch: Stretch) => void;
  /** Where what is there without a gap from the beginning on ends. */
  readonly frontier: () => number;
  /** Where the last of what is there ends. */
  readonly end: () => number;
  readonly totalBytes: () => number;
  readonly missing: (sizeBytes: number) => readonly Stretch[];
  /** Nothing is there: the file goes. */
  readonly clear: () => void;
  readonly close: () => void;
}

const FILE_MODE = 0o600;
const LINE = /^(\d{1,15}) (\d{1,15})$/;

/** Sorted, none touching another. */
export const joined = (stretches: readonly Stretch[]): readonly Stretch[] => {
  const all: Stretch[] = [];
  for (const stretch of stretches.toSorted((one, other) => one.from - other.from)) {
    const last = all.at(-1);
    if (last === undefined || last.to < stretch.from) all.push(stretch);
    else all[all.length - 1] = { from: last.from, to: Math.max(last.to, stretch.to) };
  }
  return all;
};

/** What lies between the stretches, up to `sizeBytes`. */
export const gapsBetween = (stretches: readonly Stretch[], sizeBytes: number): readonly Stretch[] => {
  const starts = [0, ...stretches.map(({ to }) => to)];
  const ends = [...stretches.map(({ from }) => from), sizeBytes];
  return starts.map((from, index) => ({ from, to: ends[index] ?? sizeBytes })).filter(({ from, to }) => from < to);
};

const readStretches = (path: string): readonly Stretch[] | null => {
  try {
    return readFileSync(path, 'latin1')
      .split('\n')
      .slice(0, -1)
      .flatMap((line) => {
        const [, from, to] = LINE.exec(line) ?? [];
        return from === undefined ? [] : [{ from: Number(from), to: Number(to) }];
      })
      .filter(({ from, to }) => from < to);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

/** `keptBytes`: how much of the file there is where nothing says more; it was then written from its beginning on. */
export const openPieces = (path: string, keptBytes: number): Pieces => {
  const noted = readStretches(path);
  const first = { from: 0, to: keptBytes };
  let there = joined(noted ?? (keptBytes > 0 ? [first] : []));
  let fd: number | null = null;

  const note = ({ from, to }: Stretch): void => {
    fd ??= openSync(path, 'a', FILE_MODE);
    writeSync(fd, `${from} ${to}\n`);
  };
  const close = (): void => {
    if (fd !== null) closeSync(fd);
    fd = null;
  };
  return {
    // A line that is cut off by a kill must not become part of this one.
    begin: () => {
      fd ??= openSync(path, 'a', FILE_MODE);
      writeSync(fd, '\n');
      for (const stretch of there) note(stretch);
    },
    add: (stretch) => {
      there = joined([...there, stretch]);
    },
    note,
    frontier: () => (there[0]?.from === 0 ? there[0].to : 0),
    end: () => there.at(-1)?.to ?? 0,
    totalBytes: () => there.reduce((sum, { from, to }) => sum + to - from, 0),
    missing: (sizeBytes) => gapsBetween(there, sizeBytes),
    clear: () => {
      close();
      rmSync(path, { force: true });
      there = [];
    },
    close,
  };
};
