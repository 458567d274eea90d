/**
 * Runs a command that reads a journal, and has the read recorded: when, and with what it has read. Reading goes on whatever
 * comes of it: with no daemon, or one that refuses, there is no record, and nothing is said. Who tells the daemon
 * (tell-daemons.ts) is not loaded before, since a read has its first line to show.
 */
import type { Command, ExitStatus } from './command.ts';
import type { Io, ReadExtent } from './io.ts';
import type { CommandLine } from './tell-daemons.ts';

/** Runs the command; its read is recorded once, by itself or when it has ended, and the end of one that goes on for ever too. */
export const recordingReads = async (command: Command, line: CommandLine, io: Io): Promise<ExitStatus> => {
  const told = async (extent: ReadExtent): Promise<void> => {
    const { tellDaemons } = await import('./tell-daemons.ts');
    await tellDaemons(command, line, extent).catch(() => undefined);
  };
  let recorded: Promise<void> | null = null;
  let ended = async (): Promise<void> => {};
  const recordRead: RecordRead = (extent, atEnd) => {
    if (recorded !== null) return recorded;
    const began = told(extent);
    recorded = began;
    if (atEnd !== undefined) {
      ended = onceOnly(async () => {
        const last = atEnd();
        await began;
        await told(last);
      });
      io.beforeEnd?.(ended);
    }
    return began;
  };
  try {
    return await command.run(line.values, line.operands, withRecordRead(io, recordRead));
  } finally {
    await recordRead({});
    await ended();
  }
};

type RecordRead = NonNullable<Io['recordRead']>;

const onceOnly = (work: () => Promise<void>): (() => Promise<void>) => {
  let done: Promise<void> | null = null;
  return () => (done ??= work());
};

/** Not a copy of its values: standard input is opened by looking at it. */
const withRecordRead = (io: Io, recordRead: RecordRead): Io =>
  Object.create(io, { recordRead: { value: recordRead } }) as Io;
