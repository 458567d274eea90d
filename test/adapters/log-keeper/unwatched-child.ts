/** Starts a log keeper in the directory that it is given, and has it end; prints "met" in between. */
import { join } from 'node:path';
import { connectLogKeeper } from '../../../src/adapters/log-keeper/client.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';

const [, , stateDir = ''] = process.argv;
const spawner = await startSpawner({ lockPath: join(stateDir, 'spawner.lock'), startTimeoutMs: 20_000 });
try {
  const keeper = await connectLogKeeper({
    ...{ stateDir, files: pooledFiles, spawner, lineBytesMax: 16_384 },
    log: () => undefined,
    tell: () => undefined,
  });
  console.log('met');
  keeper.disconnect();
  process.kill(keeper.pid, 'SIGTERM');
} finally {
  await spawner.close();
}
