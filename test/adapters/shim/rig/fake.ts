/** Installs the shim that misbehaves, and changes its mood; times that make it cost little. */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { socketPathOf } from '../../../../src/adapters/shim/process/bootstrap.ts';
import { createTtrpcClient } from '../../../../src/adapters/ttrpc/client.ts';
import type { ShimAddress } from '../../../../src/domain/tasks.ts';

export const fakeRuntimeType = 'io.containerd.fake.v2';

export const shortTimings = {
  connectMs: 400,
  callMs: 300,
  launchMs: 400,
  endMs: 300,
  detailsMs: 300,
  reapMs: 300,
  shimExitMs: 300,
  retryFirstMs: 5,
  retryLastMs: 20,
};

/** Resolves with the path of its binary; `dir` is where it keeps its sockets and hears of its mood. */
export const installFakeShim = async (dir: string): Promise<string> => {
  const path = join(dir, 'containerd-shim-fake-v2');
  const script = fileURLToPath(new URL('./fake-shim.ts', import.meta.url));
  const binary = await readFile(new URL('./fake-shim.sh', import.meta.url), 'utf8');
  const filledIn = binary.replaceAll('{dir}', dir).replace('{node}', process.execPath).replace('{script}', script);
  await writeFile(path, filledIn);
  await chmod(path, 0o755);
  return path;
};

export const setMood = async ({ shim }: { readonly shim: ShimAddress }, mood: string): Promise<void> => {
  const control = createTtrpcClient(connect(socketPathOf(shim.address)), 'the fake shim');
  await control.call('fake.Control', 'Mood', Buffer.from(mood), { timeoutMs: 1000 });
  control.close();
};
