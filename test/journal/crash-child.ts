/**
 * The process that crash tests kill: opens the journal at its first argument and appends without end from many
 * callers at once, with read calls, sealing and pruning in between. Writes each acknowledged seq to standard output
 * before it goes on, so that whoever reads that knows a lower bound of what has to be there.
 */
import { openJournal } from '../../src/journal/open.ts';
import { readRowAt, recordAt } from './support.ts';

const [path = '', callers = '8'] = process.argv.slice(2);
const { journal, findings, setAside } = openJournal({ path });
if (findings.length > 0 || setAside !== null) throw new Error(JSON.stringify({ findings, setAside }));

let next = journal.head().seq + 1;
/** Standard output is a pipe, to which Node writes at once. */
const say = (seq: number): boolean => process.stdout.write(`${seq}\n`);

const caller = async (): Promise<never> => {
  for (;;) {
    const seq = next++;
    journal.appendRead(readRowAt(seq));
    await journal.append([recordAt(seq)]);
    say(seq);
  }
};

/** Prunes a little of what is behind, again and again. */
const housekeeper = async (): Promise<never> => {
  for (;;) {
    const seq = next++;
    const body = JSON.stringify({ reason: 'test', seqs: [seq - 40, 3], segments: [] });
    const pruning = { type: 'journal.pruned', stream: 'node', cause: null, call: null, body };
    await journal.append([recordAt(seq, seq > 50 ? pruning : {})]);
    say(seq);
    await journal.sealReads();
  }
};

say(journal.head().seq);
await Promise.all([housekeeper(), ...Array.from({ length: Number(callers) }, caller)]);
