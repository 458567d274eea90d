/**
 * What is expected of a golden journal (NAME.jsonl, in NAME.expected.json beside it): how many decisions it has, every request of
 * an effect that is made today, by its digest, and where today's decisions differ from the recorded ones: nowhere, or where a
 * mistake that the journal shows has been mended. Makes and reads expectations; judges nothing.
 */
import { readFile, writeFile } from 'node:fs/promises';
import type { Difference } from '../../src/domain/turn/differences.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import type { MadeRequest } from '../../src/engine/made-requests.ts';
import { replay } from '../../src/engine/replay.ts';
import { requestDigest } from '../../src/engine/request-digest.ts';
import { digestOf } from '../support/redecided.ts';

export interface Expectation {
  readonly decisions: number;
  /** As "38.0 PrepareContainer f093efbea51c7f90": the effect's id, its kind, and the digest of its request, or why there is none. */
  readonly requests: readonly string[];
  /** As "different 38 container.exited body.reason". */
  readonly differences: readonly string[];
}

/** Records as the domain has them. Throws for one that cannot be read any more. */
export const sequencedIn = (text: string): Sequenced[] =>
  readGolden(text).map((record) => {
    const sequenced = fromJournalRecord(record);
    if (sequenced === null) throw new Error(`record ${record.seq} (${record.type}) cannot be read any more`);
    return sequenced;
  });

// Neither values nor stacks: the first are in the journal, the second are other ones with every line that moves.
const differenceText = ({ kind, seq, type, path }: Difference): string =>
  [kind, seq, type, ...(path === null ? [] : [path])].join(' ');

const requestText = ({ id, kind, request }: MadeRequest): string =>
  `${id} ${kind} ${request.ok ? requestDigest(request.value, digestOf) : request.failure.reason}`;

export const expectationOf = (records: Iterable<Sequenced>): Expectation => {
  let decisions = 0;
  const requests: string[] = [];
  const differences: string[] = [];
  for (const replayed of replay(records, { digestOf })) {
    decisions += 1;
    differences.push(...replayed.differences.map(differenceText));
    requests.push(...replayed.requests.map(requestText));
  }
  return { decisions, requests, differences };
};

/** Of NAME.jsonl: NAME.expected.json. */
const expectationPath = (journal: string): string => journal.replace(/\.jsonl$/, '.expected.json');

export const readExpectation = async (journal: string): Promise<Expectation> =>
  JSON.parse(await readFile(expectationPath(journal), 'utf8')) as Expectation;

export const writeExpectation = async (journal: string, expectation: Expectation): Promise<void> =>
  writeFile(expectationPath(journal), `${JSON.stringify(expectation, null, 2)}\n`);
