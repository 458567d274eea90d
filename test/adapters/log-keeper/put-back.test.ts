/** A log that was put back because nobody said in time that another had been opened in its place. */
import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { test } from 'node:test';
import { setImmediate as otherTurns } from 'node:timers/promises';
import { createKeeper } from '../../../src/adapters/log-keeper/keeper.ts';
import { PROTOCOL_VERSION } from '../../../src/adapters/log-keeper/protocol.ts';
import { createRecordEncoder } from '../../../src/adapters/log-keeper/records.ts';
import { systemClock } from '../../../src/adapters/log-keeper/stamp.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { containerIn, contentOf, readLog } from './support.ts';

const patienceMs = 10_000;

test('a log that was put back while its keeper lives goes on, with what was written meanwhile', async (t) => {
  // Of this test alone, which lets no real time pass.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const dir = await tempDir(t);
  const nothing = (): void => undefined;
  const keeper = createKeeper({
    ...{ dir, name: { pid: process.pid, startTicks: '1' }, encoder: createRecordEncoder(systemClock) },
    ...{ report: nothing, onAdopted: nothing, onEnd: nothing },
  });
  await keeper.perform({ op: 'hello', protocol: PROTOCOL_VERSION });
  const container = await containerIn(dir, 'late');
  const { containerId, logPath, stdoutFifo } = container;
  await using fifo = await open(stdoutFifo, constants.O_RDWR | constants.O_NONBLOCK);
  onCleanup(t, async () => void (await keeper.perform({ op: 'close', containerId, timeoutMs: 0 })));
  await keeper.perform({ op: 'open', isNew: true, lineBytesMax: 16_384, ...container });
  /** In the file of this path, as it is found now. */
  const says = async (line: string): Promise<void> => {
    await using log = await open(logPath);
    await fifo.write(`${line}\n`);
    for (const endMs = performance.now() + patienceMs; ; ) {
      const { size } = await log.stat();
      const { buffer } = await log.read(Buffer.alloc(size), 0, size, 0);
      if (contentOf(buffer.toString()).includes(line)) return;
      assert.ok(performance.now() < endMs, `${line} is not in the log`);
      await otherTurns();
    }
  };
  await says('before');
  await rename(logPath, `${logPath}.rotated`);
  await keeper.perform({ op: 'reopen', containerId, logPath });
  await says('opened anew');
  await rename(`${logPath}.rotated`, logPath);
  t.mock.timers.tick(60_000);
  await says('put back');
  assert.deepEqual(contentOf(await readLog(logPath)), ['before', 'opened anew', 'put back']);
});
