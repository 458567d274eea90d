/**
 * Has the witnesses of the configuration cosign the journal's checkpoints: each for itself, again and again, the newest that
 * is beside the journal. Nothing waits for a witness; one that fails is tried again, less and less often, and one that
 * knows another tree than this, or lies, is reported: once for a reason, with how often it was met.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { addCheckpoint } from '../adapters/witnesses/client.ts';
import type { Config } from '../config/config.ts';
import { messageOf } from '../domain/model/errors.ts';
import { proveConsistency } from '../journal/consistency.ts';
import { type Cosigner, cosignerOf, readCosigned, withCosignature, writeCosigned } from '../journal/cosigned.ts';
import { journalFiles } from '../journal/files.ts';
import { type Note, noteText, parseNote } from '../journal/notes.ts';
import { type Backoff, untilDone } from '../platform/rpc/retry.ts';
import type { Report } from './findings.ts';

type Witness = Config['journal']['witnesses'][number];

export interface WitnessOptions {
  readonly journalPath: string;
  readonly witnesses: readonly Witness[];
  readonly everyMs: number;
  readonly report: Report;
  readonly log: {
    readonly info: (fields: object, message: string) => void;
    readonly warn: (fields: object, message: string) => void;
  };
}

const BACKOFF: Backoff = { firstMs: 2_000, lastMs: 15 * 60_000 };

/** That the journal contains the checkpoint that was cosigned last. */
const proofOf = async (path: string, oldSize: number, { size }: Note): Promise<readonly Uint8Array[]> =>
  oldSize === 0 || oldSize === size ? [] : proveConsistency({ path, oldSize, size });

/** The checkpoint beside the journal, unless there is none yet. */
const newestNote = async (journalPath: string): Promise<Note | null> =>
  parseNote(await readFile(journalFiles(journalPath).note, 'utf8').catch(() => ''));

/** Why a witness is reported. */
type Doubt = 'otherSize' | 'forked' | 'otherKey';

/** A witness that was met with a doubt before has it told of in the same finding. */
const createDoubts = (report: Report, witness: string): ((doubt: Doubt, sentence: string) => void) => {
  const met = new Map<Doubt, { readonly times: number; readonly since: string }>();
  return (doubt, sentence) => {
    const at = new Date().toISOString();
    const { times, since } = met.get(doubt) ?? { times: 0, since: at };
    met.set(doubt, { times: times + 1, since });
    const again = times === 0 ? '' : ` So ${times + 1} times since ${since}, the last time at ${at}.`;
    report(`${sentence}${again}`, `witness ${witness}: ${doubt}`);
  };
};

/** Shows a witness the newest checkpoint, if it has not cosigned that one. Rejects when it is to be tried again. */
const cosignNewest = async (
  { journalPath, log }: WitnessOptions,
  { name, url }: Witness,
  cosigner: Cosigner,
  report: ReturnType<typeof createDoubts>,
  signal: AbortSignal,
): Promise<void> => {
  const note = await newestNote(journalPath);
  if (note === null) return;
  const kept = await readCosigned(journalPath, name);
  let oldSize = kept?.origin === note.origin ? kept.size : 0;
  if (oldSize >= note.size) return;
  const checkpoint = noteText(note);
  const ask = async () =>
    addCheckpoint(url, { oldSize, proof: await proofOf(journalPath, oldSize, note), checkpoint }, signal);
  let answer = await ask();
  // It knows better what it cosigned last: what it answered may have been lost on the way.
  if (answer.kind === 'otherSize' && answer.size <= note.size) {
    oldSize = answer.size;
    answer = await ask();
  }
  switch (answer.kind) {
    case 'cosigned': {
      const cosigned = withCosignature(note, answer.lines, cosigner);
      if (cosigned === null) {
        report(
          'otherKey',
          `The witness ${name} answers with what is no cosignature by its key: it has another one than the configuration says, or does not cosign what it is shown.`,
        );
        throw new Error('what it answered is not a cosignature by its key');
      }
      await writeCosigned(journalPath, name, cosigned);
      return log.info({ witness: name, records: note.size }, 'a witness has cosigned the journal');
    }
    case 'otherSize':
      if (answer.size <= note.size) throw new Error('it says another size of what it cosigned last each time');
      report(
        'otherSize',
        `The witness ${name} says that it has cosigned ${answer.size} records of this journal, which has ${note.size}: the journal was put back or cut, or the witness is wrong; see scribe verify --against.`,
      );
      throw new Error('it knows more records than the journal has');
    case 'forked':
      report(
        'forked',
        `The witness ${name} has cosigned other records under the name of this journal: it was rewritten, or its key is used elsewhere; see scribe verify --against.`,
      );
      throw new Error('it has cosigned another tree');
    case 'refused':
      throw new Error(answer.why);
  }
};

const watch = async (options: WitnessOptions, witness: Witness, signal: AbortSignal): Promise<void> => {
  const cosigner = cosignerOf(witness.key);
  if (cosigner === null)
    return options.report(
      `The key of the witness ${witness.name} is none of a cosigner: see c2sp.org/tlog-cosignature.`,
    );
  const doubts = createDoubts(options.report, witness.name);
  let lastWords = '';
  const onFailure = (error: unknown): void => {
    const words = messageOf(error);
    // A witness that stays down is told of once.
    if (words !== lastWords && !signal.aborted)
      options.log.warn({ witness: witness.name, why: words }, 'a witness has not cosigned; it is tried again');
    lastWords = words;
  };
  while (!signal.aborted) {
    await untilDone(async () => cosignNewest(options, witness, cosigner, doubts, signal), {
      backoff: BACKOFF,
      signal,
      onFailure,
    });
    lastWords = '';
    await sleep(options.everyMs, undefined, { signal, ref: false });
  }
};

/** Starts asking all of them. `close` ends it: what is under way is given up. */
export const startWitnesses = (options: WitnessOptions): { readonly close: () => Promise<void> } => {
  const ending = new AbortController();
  const watching = options.witnesses.map((witness) =>
    watch(options, witness, ending.signal).catch((error: unknown) => {
      if (!ending.signal.aborted) options.report(`The witness ${witness.name} is asked no more: ${messageOf(error)}`);
    }),
  );
  return {
    close: async () => {
      ending.abort();
      await Promise.all(watching);
    },
  };
};
