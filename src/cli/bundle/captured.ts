/** What another command writes, for a command that puts it into a file. */
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command, Options, Values } from '../command.ts';

/** What it says on standard output, however it ends; rejects when it could not run. */
export const saidBy = async <O extends Options>(command: Command<O>, values: Values<O>): Promise<string> => {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.end();
  stderr.resume();
  const said = text(stdout);
  try {
    await command.run(values, [], { stdin, stdout, stderr });
  } finally {
    stdout.end();
  }
  return said;
};
