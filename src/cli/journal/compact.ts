/** `scribe journal compact`: gives room inside the journal's file back to the file system, with the daemon up or down. */
import { dirname } from 'node:path';
import { type Compacted, compactJournal } from '../../journal/compact.ts';
import { JournalError } from '../../journal/errors.ts';
import { verifyJournal } from '../../journal/verify.ts';
import { type CompactJournalReply, DaemonDefinition } from '../../wire/scribe/v1/daemon.ts';
import { connectDaemon } from '../client.ts';
import { command, failure } from '../command.ts';
import { samePath, socketOfRoot } from '../daemon.ts';
import { bytes, counted, grouped } from '../format.ts';
import { type Io, write } from '../io.ts';
import { configOption, readableJournal, rootOf, rootOption, socketOption } from '../places.ts';
import { createProgress } from '../progress.ts';

const options = { root: rootOption, config: configOption, socket: socketOption } as const;

/** Each is about a second of work. */
const TIMEOUT_MS = 20_000;
/** What the daemon frees while it is compacted goes to its next records. */
const ENOUGH_BYTES = 256 * 1024;

/** By the daemon, which goes on. */
const compactLive = async (path: string, socket: string, io: Io): Promise<Compacted> => {
  const daemon = await connectDaemon(socket);
  const progress = createProgress(io.stderr);
  try {
    const ask = async (): Promise<CompactJournalReply> =>
      daemon.call(DaemonDefinition, DaemonDefinition.methods.compactJournal, {}, TIMEOUT_MS);
    let reply = await ask();
    const { rootDir, possible } = reply;
    if (!(await samePath(rootDir, dirname(path))))
      throw failure(
        `The daemon at ${socket} writes the journal of ${rootDir}, not ${path}: name its socket with --socket.`,
      );
    if (!possible)
      throw failure(
        `An older scribe made ${path}, in a form that cannot be compacted while the daemon runs; ${bytes(Number(reply.freeBytes))} inside it serve the next records as it is. Compact it once with the daemon stopped, which pods don't notice: from then on it can be done with the daemon running.`,
      );
    const beforeBytes = Number(reply.fileBytes);
    for (let freeBytes = Infinity; Number(reply.freeBytes) > ENOUGH_BYTES && Number(reply.freeBytes) < freeBytes; ) {
      freeBytes = Number(reply.freeBytes);
      progress.draw(() => [`compacting: ${bytes(freeBytes)} to be given back`]);
      reply = await ask();
    }
    return { beforeBytes, afterBytes: Number(reply.fileBytes), anew: null };
  } finally {
    progress.clear();
    daemon.close();
  }
};

/** null: a daemon has the journal. */
const compactStopped = (path: string): Compacted | null => {
  try {
    return compactJournal(path);
  } catch (error) {
    if (error instanceof JournalError && error.code === 'Locked') return null;
    throw error;
  }
};

const verified = async (path: string, io: Io): Promise<number> => {
  const progress = createProgress(io.stderr);
  const report = await verifyJournal(path, {
    onProgress: (records, of) => progress.draw(() => [`verifying ${grouped(records)} of ${counted(of, 'record')}`]),
  });
  progress.clear();
  const [first] = report.findings;
  if (first !== undefined)
    throw failure(
      `${path} is not what was written: ${first.seq === null ? '' : `record ${grouped(first.seq)}: `}${first.what} See what scribe verify says.`,
    );
  return report.headSeq;
};

export const journalCompact = command({
  name: 'journal compact',
  summary: 'give room inside the journal that nothing needs back to the disk',
  description: [
    "What is pruned leaves room inside the journal's file, where the next records go, so that a journal stays as large as it once was: rarely does it need compacting, as after journal.retention was made shorter.",
    'While the daemon runs, it does the work: a few pages at a time between its commits, resting nine tenths of the time, so that calls go on. Interrupted, it leaves off where it is; what was given back stays so. scribe history --reads shows who asked for it. While it is stopped, the file is written anew, which takes less time: 350 MB about four seconds, and twice the room for as long.',
    'Where SQLite cannot read what is beside the records (an index, the tree, snapshots), the journal is written anew from them while the daemon is stopped, and the damaged file is kept beside it.',
    'No record changes, and every hash stays: all of them are verified at the end.',
  ],
  options,
  exitStatus: '0 when the journal is compacted and is what was written, 1 when it is not',
  examples: [['scribe journal compact', 'Pods and calls go on meanwhile.']],
  run: async (values, _operands, io) => {
    const path = await readableJournal(await rootOf(values));
    // Written anew, it is copied on the way: where room was looked for. SQLite asks once, when its first file is opened.
    process.env['SQLITE_TMPDIR'] ??= dirname(path);
    const { beforeBytes, afterBytes, anew } =
      compactStopped(path) ?? (await compactLive(path, await socketOfRoot(values, path), io));
    if (anew !== null) {
      const without = anew.lost.length === 0 ? '' : ` Not in it: ${anew.lost.join(', ')}.`;
      await write(
        io.stderr,
        `scribe: The journal was damaged, but in none of its records: it was written anew from them, and as it was it is kept at ${anew.aside}.${without}\n`,
      );
    }
    const records = await verified(path, io);
    await write(
      io.stdout,
      `${path}: ${bytes(beforeBytes)} before, ${bytes(afterBytes)} now; ${counted(records, 'record')}, every hash is right\n`,
    );
    return 0;
  },
});
