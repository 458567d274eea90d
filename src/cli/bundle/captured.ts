/** What another command writes, for a command that puts it into a file. */
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Command, Options, Values } from '../command.ts';

export interface Said {
  /** On standard output, however it ended. */
  readonly said: string;
  /** Why that is not all; null: it is. */
  readonly thrown: Error | null;
}

export const saidBy = async <O extends Options>(command: Command<O>, values: Values<O>): Promise<Said> => {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.end();
  stderr.resume();
  const said = text(stdout);
  let thrown: Error | null = null;
  try {
    await command.run(values, [], { stdin, stdout, stderr });
  } catch (error) {
    thrown = error instanceof Error ? error : new Error(String(error));
  } finally {
    stdout.end();
  }
  return { said: await said, thrown };
};
