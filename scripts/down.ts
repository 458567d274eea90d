/**
 * `npm run down`: removes the demo pod, stops the daemon and takes the demo's bridge away. Pods of others keep running
 * under their shims unless --all is given. The journal stays.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { counted } from '../src/cli/format.ts';
import { type CriClient, criClient } from './lib/cri-client.ts';
import {
  daemonPid,
  demoBridge,
  demoOptions,
  execute,
  giveUp,
  goOnUnheard,
  needRoot,
  say,
  shellWord,
  show,
} from './lib/demo-options.ts';
import { removeDemoPods } from './lib/demo-pod.ts';

const stopTimeoutMs = 20_000;

/** Removes pods as asked; resolves with how many are left. */
const removePods = async (cri: CriClient, all: boolean): Promise<number> => {
  const demo = await removeDemoPods(cri);
  if (demo > 0) say(`removed the demo pod`);
  const { items } = await cri.runtime.listPodSandbox();
  if (!all) return items.length;
  for (const { id } of items) {
    await cri.runtime.stopPodSandbox({ podSandboxId: id });
    await cri.runtime.removePodSandbox({ podSandboxId: id });
  }
  if (items.length > 0) say(`removed ${items.length} more pods`);
  return 0;
};

/** How many pods a daemon has left that was killed: each has its files there until it is stopped, or the node is. */
const podsWithoutDaemon = async (state: string): Promise<number> => {
  const names = await readdir(join(state, 'sandboxes')).catch(() => []);
  return names.length;
};

const stopDaemon = async (state: string, pid: number): Promise<void> => {
  process.kill(pid, 'SIGTERM');
  const deadlineMs = performance.now() + stopTimeoutMs;
  while ((await daemonPid(state)) === pid) {
    if (performance.now() > deadlineMs)
      throw new Error(`the daemon (pid ${pid}) does not end: kill -9 ${pid} ends it, pods stay`);
    await sleep(20);
  }
  say(`the daemon (pid ${pid}) has ended`);
};

const main = async (): Promise<void> => {
  const { root, state, socket, all } = demoOptions('down');
  needRoot('npm run down ends containers');
  const pid = await daemonPid(state);
  if (pid === null) {
    const left = await podsWithoutDaemon(state);
    const remedy = "'npm run up' takes them over again, and 'npm run down' then removes the demo's";
    if (left > 0) throw new Error(`no daemon runs with state ${state}, but ${left} of its pods may: ${remedy}`);
    say(`no daemon runs with state ${state}`);
    return;
  }
  const cri = criClient(socket);
  const left = await removePods(cri, all).finally(() => cri.close());
  await stopDaemon(state, pid);
  if (left === 0) await execute('ip', ['link', 'delete', demoBridge]).catch(() => undefined);
  else show(`running on under their shims: ${counted(left, 'pod')}; 'npm run up' takes them over again`);
  show(`the journal stays: bin/scribe history --root ${shellWord(root)}`);
};

goOnUnheard();
await main().catch(giveUp);
