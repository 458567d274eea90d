/**
 * A process that has hold of another as CRIU has, and lets nobody have what of it dies: `node tracer-child.ts PID READY`
 * makes the file READY once it has, and goes on until it is killed.
 */
import { writeFileSync } from 'node:fs';
import koffi from 'koffi';

const PTRACE_SEIZE = 0x4206;
const FOREVER_MS = 1_000_000;

const [, , pid = '', ready = ''] = process.argv;
// What the kernel calls it too.
process.title = 'criu';
const ptrace = koffi.load('libc.so.6').func('long ptrace(long request, int pid, void *address, void *data)') as (
  ...words: readonly unknown[]
) => number;
if (ptrace(PTRACE_SEIZE, Number(pid), null, null) !== 0) throw new Error(`cannot trace process ${pid}`);
writeFileSync(ready, '');
setTimeout(() => undefined, FOREVER_MS);
