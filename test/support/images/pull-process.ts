/**
 * A program that pulls one image into a directory, tells how far it is, and ends: for tests that kill it in the middle.
 *
 *   node pull-process.ts <root> <reference>
 */
import { join } from 'node:path';
import { createImagesAdapter } from '../../../src/adapters/images/adapter.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import { platform } from './build.ts';

const [, , root = '', reference = ''] = process.argv;
const spawner = await startSpawner({ lockPath: join(root, 'spawner.lock'), startTimeoutMs: 20_000 });
const adapter = await createImagesAdapter({
  root,
  registryConfigDirs: [],
  mirrorCredentials: true,
  maxConcurrentDownloads: 3,
  maxConcurrentDownloadsPerRegistry: 12,
  progress: { timeoutMs: 20_000, bytesMin: 0 },
  platform,
  bootId: 'boot',
  spawner,
  credentials: () => null,
  isHere: () => false,
  log: { warn: () => undefined },
});
await adapter.collectLeftovers();
adapter.progress.subscribe(({ phase, digest }) => console.log(`${phase} ${digest}`));
const context = { signal: new AbortController().signal, attach: () => undefined };
await adapter.effects.PullImage({ kind: 'PullImage', reference, credentials: null }, context);
console.log('pulled');
await adapter.close();
await spawner.close();
