/**
 * Some histories on the journal that scribe runs on: its acknowledging, what a kill leaves of its files, snapshots and
 * pruning on the disk, under the same checks as its twin in memory. Planted bugs of its writer have to be found. Runs behind.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeFrame, GENESIS } from '../../src/journal/encoding.ts';
import type { AppendMessage } from '../../src/journal/writer-messages.ts';
import { runHistory, targetOfSeed } from './history.ts';
import type { Plant } from './plant.ts';
import { runHistories } from './run.ts';
import { seedOfSources } from './source-seed.ts';

const HISTORIES = 40;
const SEED = Number(process.env['SCRIBE_SIM_SEED'] ?? (await seedOfSources()));

test(`C1 C2 C7: ${HISTORIES} histories on SQLite from seed ${SEED} keep every promise`, async () => {
  const { failures } = await runHistories({ firstSeed: SEED, count: HISTORIES, threads: 2, onSqlite: true });
  assert.deepEqual(
    failures.map(({ seed, message }) => `seed ${seed}: ${message}; node scripts/simulate.ts 1 --sqlite --seed ${seed}`),
    [],
  );
});

test('a seed replays exactly on SQLite too', async () => {
  const options = { seed: SEED, target: targetOfSeed(SEED), onSqlite: true };
  const first = await runHistory(options);
  const second = await runHistory(options);
  assert.equal(second.headHash(), first.headHash());
});

const lastSeqIn = ({ records }: AppendMessage): number => {
  const source = Buffer.from(records);
  let seq = 0;
  for (let at = 0; at < source.length; ) {
    const frame = decodeFrame(source, at);
    seq = frame.seq;
    at += frame.bytes.length;
  }
  return seq;
};

const PLANTS: readonly Plant[] = [
  {
    name: 'a batch that is acknowledged before it is committed',
    startWriter: (real) => (options, news) => {
      const writer = real(options, news);
      return {
        post(message, transfer) {
          const seq = message.kind === 'append' ? lastSeqIn(message) : 0;
          writer.post(message, transfer);
          if (seq > 0) queueMicrotask(() => news.said({ kind: 'committed', seq, hash: GENESIS, readChunks: 0 }));
        },
      };
    },
  },
  {
    name: 'a commit that answers for what was handed over since',
    startWriter: (real) => (options, news) => {
      let handedOver = 0;
      const writer = real(options, {
        ...news,
        said: (message) => news.said(message.kind === 'committed' ? { ...message, seq: handedOver } : message),
      });
      return {
        post(message, transfer) {
          if (message.kind === 'append') handedOver = lastSeqIn(message);
          writer.post(message, transfer);
        },
      };
    },
  },
  {
    name: 'a commit that failed, and the next one goes on',
    startWriter: (real) => (options, news) =>
      real(options, {
        ...news,
        said: (message) => (message.kind === 'failed' ? undefined : news.said(message)),
      }),
  },
];

const TRIES = 200;

for (const plant of PLANTS) {
  test(`on SQLite the simulator finds: ${plant.name}`, async (t) => {
    for (let seed = 1; seed <= TRIES; seed += 1) {
      try {
        await runHistory({ seed, target: targetOfSeed(seed), plant, onSqlite: true });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        t.diagnostic(`found after ${seed} histories: ${message.slice(0, 160)}`);
        return;
      }
    }
    assert.fail(`not found in ${TRIES} histories`);
  });
}
