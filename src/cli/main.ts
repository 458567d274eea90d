/** What bin/scribe starts: the command line and the process it runs in, put together. Must load next to nothing. */
import { processIo } from './io.ts';
import { runCommandLine } from './run.ts';

process.exitCode = await runCommandLine(process.argv.slice(2), processIo());
