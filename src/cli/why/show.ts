/** An answer for people: the sentence first, then what is known, then the chain of causes; or as one object of JSON. */
import { duration, jsonLine, printable, type ShowTime, utcTime } from '../format.ts';
import { type Io, write } from '../io.ts';
import { createTable } from '../table.ts';
import type { Answer } from './answer.ts';
import { sinceBefore } from './chain.ts';

const NAME_WIDTH = 12;

export const showAnswer = async (answer: Answer, showTime: ShowTime, io: Io): Promise<void> => {
  const { headline, facts, chain } = answer;
  const lines = facts.map(({ name, text }) => `  ${name.padEnd(NAME_WIDTH)}${printable(text)}\n`);
  await write(io.stdout, `${printable(headline)}\n${lines.length === 0 ? '' : `\n${lines.join('')}`}`);
  if (chain.length === 0) return;
  await write(io.stdout, '\n');
  const table = createTable(io.stdout, [
    { title: 'RECORD', widthMax: 12 },
    { title: 'TIME', widthMax: 29 },
    { title: 'AFTER', widthMax: 12 },
    { title: 'TOOK', widthMax: 9 },
    { title: 'WHAT', widthMax: 200 },
  ]);
  for (const [index, { seq, atNs, text, tookNs, style }] of chain.entries()) {
    const took = tookNs === null ? '' : duration(tookNs);
    await table.add([String(seq), showTime(atNs), sinceBefore(chain, index), took, text], style);
  }
  await table.flush();
};

export const answerJson = ({ about, headline, facts, chain }: Answer, seq: number, atNs: bigint): string =>
  jsonLine({
    about,
    asOf: { seq, time: utcTime(atNs) },
    answer: headline,
    facts: Object.fromEntries(facts.map(({ name, text }) => [name, text])),
    chain: chain.map(({ seq: record, atNs: recordNs, text, tookNs }) => ({
      seq: record,
      time: utcTime(recordNs),
      text,
      tookNs: tookNs === null ? null : String(tookNs),
    })),
  });
