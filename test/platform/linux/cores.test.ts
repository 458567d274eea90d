/**
 * What the kernel keeps of a process that dies of a signal: a core, unless it refused to have one written. In processes
 * of their own, whose shell says whether there was a core.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const syscalls = new URL('../../../src/platform/linux/syscalls.ts', import.meta.url).href;

const dieOfAbort = async (cwd: string, before: string): Promise<string> => {
  const program = `${before} process.kill(process.pid, 'SIGABRT'); setTimeout(() => {}, 10_000);`;
  const script = 'ulimit -c unlimited; "$0" --input-type=module -e "$1"; exit 0';
  return (await run(['bash', '-c', script, process.execPath, program], { cwd })).stderr;
};

test('a process that refuses cores leaves none, where another does, and what it starts is as any process', async (t) => {
  const cwd = await tempDir(t);
  const refuse = `const { refuseCores } = await import(${JSON.stringify(syscalls)}); refuseCores();`;
  const startAnother = `
    const { spawnSync } = await import('node:child_process');
    const { stderr } = spawnSync('bash', ['-c', 'sh -c "kill -ABRT \\\\$\\\\$"; exit 0']);
    process.stderr.write('child: ' + stderr);`;

  assert.match(await dieOfAbort(cwd, ''), /Aborted +\(core dumped\)/);
  assert.doesNotMatch(await dieOfAbort(cwd, refuse), /core dumped/);
  assert.match(await dieOfAbort(cwd, `${refuse}${startAnother}`), /child: .*core dumped/);
});
