/** Holding a process where not even its line of /proc can be read: nothing of the try stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runOk } from '../../support/process.ts';

const module = fileURLToPath(new URL('../../../src/platform/linux/processes.ts', import.meta.url));

/** One descriptor is left, which the hold takes; reading would need another. */
const script = `
import { closeSync, openSync } from 'node:fs';
import { holdProcess } from ${JSON.stringify(module)};
const taken = [];
try { for (;;) taken.push(openSync('/dev/null')); } catch {}
closeSync(taken.pop());
const how = await holdProcess({ pid: process.pid, startTicks: '1' }).catch(({ code }) => code);
const isFree = (() => { try { openSync('/dev/null'); return true; } catch { return false; } })();
for (const fd of taken) closeSync(fd);
console.log(how, isFree);
`;

test('a process that cannot be looked at for want of descriptors costs none', async () => {
  const argv = ['prlimit', '--nofile=200', process.execPath, '--input-type=module', '--eval', script];
  assert.equal((await runOk(argv)).trim(), 'EMFILE true');
});
