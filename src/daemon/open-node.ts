/**
 * The journal as a start finds it: locked, checked, and folded into the state that the daemon goes on with. What was
 * wrong with it is logged and found. Makes nothing but what the journal itself is made of.
 */
import type { Logger } from 'pino';
import type { NodeState } from '../domain/state.ts';
import { nodeFold } from '../engine/node-fold.ts';
import { type FoldedState, foldState } from '../journal/fold.ts';
import { openJournal, type OpenedJournal } from '../journal/open.ts';
import type { Findings } from './findings.ts';

interface Options {
  readonly path: string;
  /** Called as soon as this is the one daemon here: what needs no state may begin while the journal is folded. */
  readonly onLocked: () => void;
  readonly refuseReads: () => boolean;
  readonly findings: Findings;
  readonly log: Logger;
}

export interface OpenedNode extends Pick<FoldedState<NodeState>, 'state' | 'seq' | 'snapshotSeq'> {
  readonly journal: OpenedJournal['journal'];
  /** The journal that was there could not be read, and this is a new one. */
  readonly wasSetAside: boolean;
}

/** Throws when another daemon has the journal, or when there can be none. */
export const openNode = ({ path, onLocked, refuseReads, findings, log }: Options): OpenedNode => {
  let folded: FoldedState<NodeState> | null = null;
  const opened = openJournal({
    path,
    onLocked,
    // A page that can't be read shows in the fold; the journal is then set aside and a new one folded (C20).
    beforeWriting: (file) => {
      folded = foldState(file, nodeFold);
    },
    refuseReads,
    onWalAlarm: (bytes) =>
      log.warn(
        { bytes },
        bytes === null ? 'the write-ahead log is small again' : 'the write-ahead log grows; is a reader hanging?',
      ),
  });
  const { state, seq, snapshotSeq, bad } = wholeFold(folded);
  for (const finding of [...opened.findings, ...bad.map((record) => `Record ${record.seq}: ${record.what}`)]) {
    log.error({ finding }, 'journal');
    findings.add(finding);
  }
  if (opened.setAside !== null) {
    log.error(opened.setAside, 'the journal could not be read and was set aside');
    findings.add(`The journal could not be read and was set aside at ${opened.setAside.path}: ${opened.setAside.why}`);
  }
  return { journal: opened.journal, state, seq, snapshotSeq, wasSetAside: opened.setAside !== null };
};

/** openJournal has called back by now; a journal that was set aside has been folded anew. */
const wholeFold = (folded: FoldedState<NodeState> | null): FoldedState<NodeState> => {
  if (folded === null) throw new Error('The journal was opened without being folded.');
  return folded;
};
