/** Signalling a container's process where it cannot be held: its shim can still be asked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runOk } from '../../support/process.ts';

const module = fileURLToPath(new URL('../../../src/adapters/shim/tasks/signal-init.ts', import.meta.url));

/** No descriptor is left when a process is to be held. */
const script = `
import { closeSync, openSync } from 'node:fs';
import { signalInit } from ${JSON.stringify(module)};
const warned = [];
const context = {
  tasks: new Map([['c', { signalledHere: () => ({ pid: process.pid, startTicks: '1' }) }]]),
  shims: new Map([['p', { shim: { pid: process.ppid } }]]),
  log: { warn: ({ error }) => void warned.push(error) },
};
const taken = [];
try { for (;;) taken.push(openSync('/dev/null')); } catch {}
const how = await signalInit(context, { podSandboxId: 'p', containerId: 'c', signal: 15 }).catch(({ code }) => code);
for (const fd of taken) closeSync(fd);
console.log(how, warned.join());
`;

test('a container whose process cannot be held for want of descriptors is signalled by its shim', async () => {
  const argv = ['prlimit', '--nofile=200', process.execPath, '--input-type=module', '--eval', script];
  assert.match(await runOk(argv), /^false EMFILE: too many open files, pidfd_open pid \d+\n$/);
});
