/** A journal that is doubted: what it says was being made is left alone, and nothing is deleted, until somebody knows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { readState, writeState } from '../../src/domain/turn/snapshot.ts';
import { reasonOf, runPod, settled, startRig } from './rig.ts';

const doubt = { what: 'It was put back.', head: { file: 'journal.db.head.lost-1', digest: 'ab' } };
const image = 'registry.test/app:1';
const acknowledge: CallDraft = { method: 'AcknowledgeJournal', reason: 'restored from a backup' };

test('C19: of a journal that is doubted nothing is undone or deleted before it is acknowledged', async () => {
  const first = await startRig({ perform: { AttachNetwork: () => new Promise(() => {}) } });
  void first.call(runPod());
  await first.settle();
  await first.engine.observe({ kind: 'JournalDoubted', doubt });

  const rig = await startRig({ contents: first.contents });
  await settled(rig);
  // The same head is no news.
  await rig.engine.observe({ kind: 'JournalDoubted', doubt });
  await rig.call({ method: 'PullImage', image, credentials: null });
  await rig.call({ method: 'RemoveImage', image });
  // Longer than a creation waits to be claimed.
  await rig.advance(300_000);
  assert.equal(rig.view.state.sandboxes.size, 1);
  assert.deepEqual(
    rig.performed.filter((kind) => kind !== 'PullImage'),
    [],
  );
  assert.equal(rig.view.state.journalDoubts?.length, 1);
  assert.equal(writeState(readState(writeState(rig.view.state))), writeState(rig.view.state));

  await rig.call(acknowledge);
  await settled(rig);
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.includes('DetachNetwork'));
  assert.ok(rig.performed.includes('DeleteImageContent'));
  assert.equal(rig.view.state.journalDoubts, undefined);
  assert.equal(reasonOf(await rig.call(acknowledge)), 'WrongState');
  await rig.engine.observe({ kind: 'JournalDoubted', doubt });
  assert.equal(rig.view.state.journalDoubts, undefined, 'what was acknowledged is doubted again');
});
