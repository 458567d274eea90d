/**
 * The journal as a start finds it: locked, checked, and folded into the state that the daemon goes on with. Damage to
 * it is logged, and a finding. Makes nothing but what the journal itself is made of.
 */
import type { Logger } from 'pino';
import { KnownError } from '../domain/model/errors.ts';
import type { JournalDoubt } from '../domain/model/notes.ts';
import type { NodeState } from '../domain/model/state.ts';
import { type UnknownRecord, whyNewerIn, writerOf } from '../engine/newer.ts';
import { nodeFoldTelling } from '../engine/node-fold.ts';
import { type FoldedState, foldState } from '../journal/fold.ts';
import type { LostHead } from '../journal/lost-heads.ts';
import { openJournal, type OpenedJournal } from '../journal/open.ts';
import type { Findings } from './findings.ts';

interface Options {
  readonly path: string;
  /** Called as soon as this is the one daemon here: what needs no state may begin while the journal is folded. */
  readonly onLocked: () => void;
  readonly refuseReads: () => boolean;
  readonly reservePath: string;
  readonly markPath: string;
  readonly onDiskFull: () => void;
  readonly findings: Findings;
  readonly log: Logger;
}

export interface OpenedNode extends Pick<FoldedState<NodeState>, 'state' | 'seq' | 'snapshotSeq'> {
  readonly journal: OpenedJournal['journal'];
  /** What shows that this journal is not all that was written here. */
  readonly doubts: readonly JournalDoubt[];
}

/** Throws when another daemon has the journal, or when there can be none. */
export const openNode = ({ path, findings, log, ...options }: Options): OpenedNode => {
  let folded: FoldedState<NodeState> | null = null;
  let unknown: Unknown = NOTHING_UNKNOWN;
  const opened = openJournal({
    ...options,
    path,
    // A page that can't be read shows in the fold; the journal is then set aside and a new one folded (C20).
    beforeWriting: (file) => {
      unknown = NOTHING_UNKNOWN;
      folded = foldState(
        file,
        nodeFoldTelling((record, before) => {
          unknown = { first: unknown.first ?? { record, writer: writerOf(before) }, records: unknown.records + 1 };
        }),
      );
    },
    onWalAlarm: (bytes) =>
      log.warn(
        { bytes },
        bytes === null ? 'the write-ahead log is small again' : 'the write-ahead log grows; is a reader hanging?',
      ),
  });
  const { state, seq, snapshotSeq, bad } = wholeFold(folded);
  const bads = bad.map((record) => `Record ${record.seq}: ${record.what}`);
  for (const finding of [...opened.findings, ...bads, ...newerFindings(unknown, state)]) {
    log.error({ finding }, 'journal');
    // A head that is lost is a doubt, which is told until somebody knows of it; this would be told until the daemon ends.
    if (finding !== opened.loss) findings.add(finding);
  }
  if (opened.setAside !== null) {
    log.error(opened.setAside, 'the journal could not be read and was set aside');
    findings.add(`The journal could not be read and was set aside at ${opened.setAside.path}: ${opened.setAside.why}`);
  }
  const doubts = opened.lostHeads.map((lost) => doubtOf(lost, seq));
  if (opened.missingThrough !== null && opened.setAside === null)
    doubts.push({
      what: `The journal was put back, cut or replaced: it ended at record ${seq}, and the daemon before this one, which was killed, had come to record ${opened.missingThrough}.`,
    });
  if (opened.setAside !== null)
    doubts.push({ what: `The journal before this one could not be read: ${opened.setAside.why}` });
  return { journal: opened.journal, state, seq, snapshotSeq, doubts };
};

/** Records that this scribe does not know. */
interface Unknown {
  readonly first: UnknownRecord | null;
  readonly records: number;
}

const NOTHING_UNKNOWN: Unknown = { first: null, records: 0 };

/** Pods may run on that this scribe knows nothing of, or takes for others, and nobody else would say so. */
const newerFindings = ({ first, records }: Unknown, state: NodeState): string[] => {
  const why = whyNewerIn(first, state);
  if (why === null) return [];
  const what =
    first === null ? '' : `, and ${records} of its records, from record ${first.record.seq} on, are passed over`;
  return [`A newer scribe had this node${what}: what runs may be missing here, or taken for something else. ${why}`];
};

const doubtOf = ({ file, digest, seq }: LostHead, endSeq: number): JournalDoubt => ({
  what:
    seq === null
      ? `The head beside the journal could not be read when it ended at record ${endSeq}; it is kept as ${file}.`
      : `The journal was put back, cut or replaced: it ended at record ${endSeq} without record ${seq} of the head that is kept as ${file}.`,
  head: { file, digest },
});

/** openJournal has called back by now; a journal that was set aside has been folded anew. */
const wholeFold = (folded: FoldedState<NodeState> | null): FoldedState<NodeState> => {
  if (folded === null) throw new KnownError('The journal was opened without being folded.');
  return folded;
};
