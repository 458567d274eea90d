/**
 * Shows an image on its way: a line per layer, drawn over and over on a terminal, or a line per step where there is
 * none. The ids at the end are the result; all else goes to standard error.
 */
import type { ImageProgress } from '../../wire/scribe/v1/images.ts';
import { bytes, printable, shortId } from '../format.ts';
import { type Io, write } from '../io.ts';
import { createProgress } from '../progress.ts';

const BAR_CHARS = 24;
const PHASE_CHARS = 11;
/** What a rate is taken over: older movement says nothing of now. */
const RATE_WINDOW_MS = 3_000;
const DONE = 'done';

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
}

interface Line {
  readonly label: string;
  phase: string;
  bytesDone: number;
  bytesTotal: number;
  samples: Sample[];
}

export interface Transfer {
  /** `label` names the line: a layer's digest, or whatever is sent. */
  readonly note: (label: string, phase: string, bytesDone: number, bytesTotal: number) => void;
  /** Nothing more comes; what there is to see stays. */
  readonly end: () => void;
}

const barOf = (share: number): string => {
  const filled = Math.round(BAR_CHARS * Math.min(1, Math.max(0, share)));
  return `[${'='.repeat(filled)}${' '.repeat(BAR_CHARS - filled)}]`;
};

const rateOf = ({ samples }: Line): string => {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.atMs <= first.atMs) return '';
  return `  ${bytes(Math.max(0, Math.round(((last.bytes - first.bytes) * 1000) / (last.atMs - first.atMs))))}/s`;
};

const lineOf = (line: Line): string => {
  const { label, phase, bytesDone, bytesTotal } = line;
  const start = `${label}  ${phase.padEnd(PHASE_CHARS)}`;
  if (phase === DONE) return `${start}  ${bytes(bytesTotal)}`;
  if (bytesTotal === 0) return `${start}  ${bytes(bytesDone)}${rateOf(line)}`;
  return `${start}  ${barOf(bytesDone / bytesTotal)}  ${bytes(bytesDone)} of ${bytes(bytesTotal)}${rateOf(line)}`;
};

export const createTransfer = (
  { stderr }: Pick<Io, 'stderr'>,
  nowMs: () => number = () => performance.now(),
): Transfer => {
  const lines = new Map<string, Line>();
  const progress = createProgress(stderr, nowMs);

  const plain = ({ label, phase, bytesTotal }: Line): void => {
    if (stderr.isTTY !== true) stderr.write(`${label}: ${phase}${bytesTotal > 0 ? `, ${bytes(bytesTotal)}` : ''}\n`);
  };

  return {
    note(label, phase, bytesDone, bytesTotal) {
      const line = lines.get(label) ?? { label: printable(label), phase: '', bytesDone, bytesTotal, samples: [] };
      lines.set(label, line);
      const begins = line.phase !== phase;
      Object.assign(line, { phase, bytesDone, bytesTotal });
      if (begins) {
        line.samples = [];
        plain(line);
      }
      const atMs = nowMs();
      line.samples = [
        ...line.samples.filter((sample) => atMs - sample.atMs <= RATE_WINDOW_MS),
        { atMs, bytes: bytesDone },
      ];
      progress.draw(() => [...lines.values()].map(lineOf));
    },
    end: () => progress.keep([...lines.values()].map(lineOf)),
  };
};

/** Follows a pull or load to its end and prints the ids of the images that are there then. */
export const showTransfer = async (
  transfer: Transfer,
  messages: AsyncIterable<ImageProgress>,
  io: Io,
): Promise<void> => {
  const ids: string[] = [];
  try {
    for await (const { digest, phase, bytesDone, bytesTotal, imageIds } of messages) {
      ids.push(...imageIds);
      if (digest !== '') transfer.note(shortId(digest), printable(phase), Number(bytesDone), Number(bytesTotal));
    }
  } finally {
    transfer.end();
  }
  for (const id of ids) await write(io.stdout, `${printable(id)}\n`);
};
