/** `scribe journal vkey`: the public key by which others check what the journal's owner signs. */
import { vkeyIn } from '../../journal/open-tree.ts';
import { command } from '../command.ts';
import { write } from '../io.ts';
import { configOption, readableJournal, rootOf, rootOption } from '../places.ts';

const options = { root: rootOption, config: configOption } as const;

export const journalVkey = command({
  name: 'journal vkey',
  summary: 'print the key that checks signatures of the journal',
  description: [
    "Prints the journal's name and public key as verifiers of signed notes take them (c2sp.org/signed-note). It checks <root>/journal.db.checkpoint, what export --tlog and prove write and, given to verify --key, every signature in the journal. Keep a copy where whoever owns this machine cannot change it.",
  ],
  options,
  examples: [['scribe journal vkey > /mnt/audit/node7.vkey', 'For scribe verify --key, and for fsck --public_key.']],
  run: async (values, _operands, io) => {
    await write(io.stdout, `${vkeyIn(await readableJournal(await rootOf(values)))}\n`);
    return 0;
  },
});
