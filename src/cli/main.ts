/** What bin/scribe starts: the command line and the process it runs in, put together. Must load next to nothing. */
import { processIo } from './io.ts';
import { runCommandLine } from './run.ts';

const exitStatus = await runCommandLine(process.argv.slice(2), processIo());
// What a command that failed half-way left open (threads, sockets) must not keep the process; its output is written.
process.exit(exitStatus);
