/** Finding shims among the processes of the node where there is not the means to look at all of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runOk, startProcess } from '../../support/process.ts';

const module = fileURLToPath(new URL('../../../src/adapters/shim/process/identify.ts', import.meta.url));
const ID = 'a-shim-that-is-looked-for';

/** So many descriptors are left; each command line that is read takes one. */
const script = (free: number): string => `
import { closeSync, openSync } from 'node:fs';
import { findShims } from ${JSON.stringify(module)};
const taken = [];
try { for (;;) taken.push(openSync('/dev/null')); } catch {}
for (let left = ${free}; left > 0; left -= 1) closeSync(taken.pop());
const how = await findShims(${JSON.stringify(ID)}).then((found) => found.length, ({ code }) => code);
for (const fd of taken) closeSync(fd);
console.log(how);
`;

const findWith = async (free: number): Promise<string> => {
  const argv = ['prlimit', '--nofile=200', process.execPath, '--input-type=module', '--eval', script(free)];
  return (await runOk(argv)).trim();
};

test('a shim that cannot be looked at for want of descriptors does not count as gone', async (t) => {
  await startProcess(t, [process.execPath, '--eval', 'setInterval(() => undefined, 1000)', '--', '-id', ID]);
  assert.equal(await findWith(100), '1');
  assert.equal(await findWith(3), 'EMFILE');
});
