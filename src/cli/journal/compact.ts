/** `scribe journal compact`: gives room inside the journal's file back to the file system. */
import { compactJournal } from '../../journal/compact.ts';
import { JournalError } from '../../journal/errors.ts';
import { measureFree } from '../../journal/sizes.ts';
import { command, failure } from '../command.ts';
import { bytes } from '../format.ts';
import { write } from '../io.ts';
import { configOption, readableJournal, rootOf, rootOption } from '../places.ts';

const options = { root: rootOption, config: configOption } as const;

export const journalCompact = command({
  name: 'journal compact',
  summary: 'give room inside the journal that nothing needs back to the disk',
  description: [
    "What is pruned leaves room inside the journal's file, where the next records go, so that a journal stays as large as it once was: rarely does it need compacting, as after journal.retention was made shorter.",
    'It writes the file anew, and nothing can be committed meanwhile: so it is refused while the daemon runs. Pods live on while the daemon is stopped for it; 350 MB take about four seconds. No record changes, and every hash stays.',
  ],
  options,
  examples: [['systemctl stop scribe && scribe journal compact; systemctl start scribe', 'Pods go on meanwhile.']],
  run: async (values, _operands, io) => {
    const path = await readableJournal(await rootOf(values));
    try {
      const { beforeBytes, afterBytes } = compactJournal(path);
      await write(io.stdout, `${path}: ${bytes(beforeBytes)} before, ${bytes(afterBytes)} now\n`);
      return 0;
    } catch (error) {
      if (!(error instanceof JournalError) || error.code !== 'Locked') throw error;
      throw failure(
        `Compacting writes the journal anew, and the daemon could not commit meanwhile. ${bytes(measureFree(path))} would be given back; they serve the next records as it is. To do it all the same stop the daemon, which pods don't notice, compact, and start it. ${error.message}`,
        error,
      );
    }
  },
});
