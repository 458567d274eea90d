/** `scribe prove`: that a record is in the journal, for whoever has only the record, the key and this proof. */
import { leafHash, rootOfInclusion } from '../journal/merkle.ts';
import { noteText } from '../journal/notes.ts';
import { openTree } from '../journal/open-tree.ts';
import { command, failure, misuse } from './command.ts';
import { grouped } from './format.ts';
import { write } from './io.ts';
import { noRecord } from './past/state.ts';
import { configOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';

const options = { root: rootOption, config: configOption } as const;

const seqOf = (word: string): number => {
  const seq = /^[1-9]\d{0,14}$/.test(word) ? Number(word) : 0;
  if (seq === 0) throw misuse(`RECORD is a record's number, from 1 on, and not "${word}".`);
  return seq;
};

export const prove = command({
  name: 'prove',
  summary: 'prove that a record is in the journal',
  description: [
    "Prints a proof (c2sp.org/tlog-proof) that the record with this number is in the journal's Merkle tree, with the signed checkpoint of that tree. It is checked without the journal and without scribe: with the record's body_hash, which is the log's entry, and what scribe journal vkey prints.",
    'A pruned record can be proven, too: whoever kept its columns computes the body_hash from them (docs/journal-format.md), as history --json prints it.',
    'Reads the journal itself, with the daemon up or down. For records that are newer than the checkpoint beside the journal (at most 10 seconds) it signs one with the key, which only root can read.',
  ],
  options,
  operands: { name: 'RECORD', count: 1 },
  examples: [
    ['scribe prove 1234 > 1234.tlog-proof', 'Proves that record 1234 is in the journal.'],
    ["scribe history --json | jq -r 'select(.seq == 1234) | .bodyHash'", 'What the proof is about.'],
  ],
  readsIn: readsInRoot,
  run: async (values, [word = ''], io) => {
    const seq = seqOf(word);
    const tree = openTree(await readableJournal(await rootOf(values)));
    try {
      if (seq > tree.size) throw noRecord(seq, tree.size);
      const note = tree.checkpoint(seq);
      const proof = tree.inclusionProof(seq - 1, note.size);
      const [content = new Uint8Array()] = tree.leaves(seq - 1, 1);
      if (!Buffer.from(rootOfInclusion(leafHash(content), seq - 1, note.size, proof)).equals(note.root))
        throw failure(
          `The tree in the journal does not prove record ${grouped(seq)}: scribe verify says what is wrong.`,
        );
      const hashes = proof.map((hash) => `${Buffer.from(hash).toString('base64')}\n`);
      void io.recordRead?.({ fromSeq: seq, toSeq: seq, shown: 1 });
      await write(io.stdout, `c2sp.org/tlog-proof@v1\nindex ${seq - 1}\n${hashes.join('')}\n${noteText(note)}`);
      return 0;
    } finally {
      tree.close();
    }
  },
});
