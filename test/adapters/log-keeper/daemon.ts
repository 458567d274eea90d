/**
 * As much of a daemon as there is to kill: a spawner and a client of the log keeper. `daemon.ts <state directory>
 * [<open request as JSON> ...]` says "connected" with what the keeper reads already, and stays.
 */
import { join } from 'node:path';
import { connectLogKeeper } from '../../../src/adapters/log-keeper/client.ts';
import type { OpenLogRequest } from '../../../src/adapters/log-keeper/types.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';

const [stateDir = '', ...requests] = process.argv.slice(2);
const spawner = await startSpawner({ lockPath: join(stateDir, 'daemon.lock'), startTimeoutMs: 20_000 });
const say = (message: string): void => void process.stdout.write(`${message}\n`);
const keeper = await connectLogKeeper({
  stateDir,
  files: pooledFiles,
  spawner,
  lineBytesMax: 16_384,
  tell: () => undefined,
  log: say,
});
const before = await keeper.list();
for (const request of requests) await keeper.open(JSON.parse(request) as OpenLogRequest);
say(`connected to ${keeper.pid}, reading ${before.join(' ')}`);
