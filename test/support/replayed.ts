/** That a daemon's journal is decided again as it was: every decision in it, and every request of an effect. */
import assert from 'node:assert/strict';
import { openSource } from '../../src/cli/replay/open-source.ts';
import { tallyOf, type Tally } from '../../src/cli/replay/run.ts';
import type { Difference } from '../../src/domain/turn/differences.ts';
import type { Daemon } from './daemon.ts';
import { journalPath } from './journal.ts';

const DIFFERENCES_SHOWN = 5;

/** The daemon may run. Resolves with what was checked, which is all that is journaled. */
export const assertReplays = async (daemon: Pick<Daemon, 'dirs'>): Promise<Tally> => {
  const source = await openSource(journalPath(daemon));
  try {
    const differences: Difference[] = [];
    const tally = await tallyOf(source, source.headSeq, {
      difference: async (difference) => void (differences.length < DIFFERENCES_SHOWN && differences.push(difference)),
      progress: () => undefined,
    });
    assert.deepEqual(differences, []);
    assert.deepEqual(tally.unreadable, []);
    assert.equal(tally.decisions, tally.journaled);
    assert.ok(tally.decisions > 0 && tally.requests > 0);
    return tally;
  } finally {
    source.close();
  }
};
