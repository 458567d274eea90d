/** `scribe export`: the journal for other people's tools. */
import { resolve } from 'node:path';
import { openTree } from '../journal/open-tree.ts';
import { command, misuse } from './command.ts';
import { exportTlog } from './export/tlog.ts';
import { counted } from './format.ts';
import { write } from './io.ts';
import { configOption, readableJournal, rootOf, rootOption } from './places.ts';

const options = {
  root: rootOption,
  config: configOption,
  tlog: {
    value: 'DIR',
    about:
      "Writes the journal as a tile-based transparency log (c2sp.org/tlog-tiles) into this directory: every record's body_hash, the Merkle tree over them and a signed checkpoint.",
  },
} as const;

export const exportCommand = command({
  name: 'export',
  summary: "write the journal for other people's tools",
  description: [
    "With --tlog DIR every record's body_hash, the Merkle tree over them (RFC 6962) and a signed checkpoint become files that verifiers of transparency logs read, such as fsck of Tessera. No body is among them, so they show nothing of what was recorded, and a journal that was pruned has all of them. Written again into the same directory, they grow.",
    'Reads the journal itself, with the daemon up or down, and changes nothing in it. What checks signatures is printed by scribe journal vkey.',
  ],
  options,
  examples: [['scribe export --tlog /mnt/audit/node7.tlog', 'Writes the tree and its checkpoint.']],
  run: async (values, _operands, io) => {
    if (values.tlog === undefined) throw misuse('--tlog DIR is missing: it says where to.');
    const dir = resolve(values.tlog);
    const tree = openTree(await readableJournal(await rootOf(values)));
    try {
      const { size } = await exportTlog(tree, dir);
      await write(io.stdout, `${dir}: ${counted(size, 'record')} of the log ${tree.origin}\n`);
      return 0;
    } finally {
      tree.close();
    }
  },
});
