/** How differences are written: a table for people, an object a line for programs; and the sums beneath. */
import type { Difference } from '../../domain/turn/differences.ts';
import { subjectOf } from '../../domain/model/records.ts';
import { counted, grouped, jsonLine, shortId } from '../format.ts';
import { type Io, write } from '../io.ts';
import { createTable, type Table } from '../table.ts';
import type { Tally } from './run.ts';
import type { Source } from './source.ts';

export interface Shown {
  readonly difference: (name: string, difference: Difference) => Promise<void>;
  readonly tally: (source: Source, tally: Tally, tookMs: number) => Promise<void>;
  /** Of a journal that cannot be replayed, or not to its end; people are told on standard error. */
  readonly failed: (name: string, why: string) => Promise<void>;
}

/** More rows are counted, not shown: what went wrong first is mostly why the rest did. */
const ROWS_MAX = 200;
const VALUE_CHARACTERS_MAX = 60;

export const showJson = ({ stdout }: Io): Shown => ({
  difference: (journal, { seq, decider, expected, actual, path, cause, ...more }) =>
    write(stdout, jsonLine({ journal, seq, decider, expected, actual, path, cause, ...more })),
  tally: ({ name, start }, tally, tookMs) =>
    write(stdout, jsonLine({ journal: name, ...tally, startsFrom: start.from, tookMs: Math.round(tookMs) })),
  failed: (journal, failure) => write(stdout, jsonLine({ journal, failure })),
});

const COLUMNS = [
  { title: 'RECORD', widthMax: 12 },
  { title: 'ABOUT', widthMax: 24 },
  { title: 'TYPE', widthMax: 24 },
  { title: 'DECIDED ON', widthMax: 48 },
  { title: 'DIFFERENCE', widthMax: 40 },
  { title: 'RECORDED', widthMax: VALUE_CHARACTERS_MAX },
  { title: 'TODAY', widthMax: VALUE_CHARACTERS_MAX },
] as const;

export const showTable = ({ stdout }: Io): Shown => {
  let table: Table | null = null;
  let rows = 0;
  return {
    async difference(name, difference) {
      rows += 1;
      if (table === null) {
        await write(stdout, `${name}\n`);
        table = createTable(stdout, COLUMNS);
      }
      if (rows <= ROWS_MAX) await table.add(cellsOf(difference), 'bad');
    },
    async tally(source, tally, tookMs) {
      await table?.flush();
      if (rows > ROWS_MAX) await write(stdout, `and ${counted(rows - ROWS_MAX, 'difference')} more: --json has all\n`);
      await write(
        stdout,
        linesOf(source, tally, tookMs)
          .map((line) => `${line}\n`)
          .join(''),
      );
      table = null;
      rows = 0;
    },
    async failed() {
      // What differs in the next journal is no row of this one's.
      await table?.flush();
      table = null;
      rows = 0;
    },
  };
};

export const aboutOf = (stream: string): string => {
  const { kind, id } = subjectOf(stream);
  return id === '' ? kind : `${kind}/${shortId(id)}`;
};

const cellsOf = ({ kind, seq, stream, type, decider, cause, path, expected, actual }: Difference): string[] => [
  grouped(seq),
  aboutOf(stream),
  type,
  `${decider} (${grouped(cause.seq)})`,
  DIFFERENCES[kind](path ?? ''),
  kind === 'different' ? valueOf(expected) : bodyOf(expected),
  kind === 'different' ? valueOf(actual) : bodyOf(actual),
];

const DIFFERENCES: Readonly<Record<Difference['kind'], (path: string) => string>> = {
  missing: () => 'missing',
  extra: () => 'extra',
  different: (path) => path,
  threw: () => 'deciding throws',
  request: (path) => `request of ${path}`,
};

export const valueOf = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX - 1)}…` : text;
};

/** Of a whole record only what it says: its other columns are cells. */
const bodyOf = (said: unknown): string => {
  if (said === null) return '-';
  return valueOf(typeof said === 'object' && 'body' in said ? said.body : said);
};

const linesOf = ({ name, start }: Source, tally: Tally, tookMs: number): string[] => {
  const { fromSeq, toSeq, decisions, journaled, events, requests, differing, differences, unchecked } = tally;
  const perSecond = tookMs > 0 ? ` (${grouped(Math.round((decisions / tookMs) * 1000))} decisions/s)` : '';
  const begun =
    start.from === 'first'
      ? []
      : [
          `${name}: begun behind record ${grouped(start.seq)}, from ${START_WORDS[start.from]}: what was before is pruned in part, ${counted(unchecked, 'decision')} of it cannot be checked`,
        ];
  const verb = differing === 1 ? 'differs' : 'differ';
  const same =
    differing === 0 ? 'all as recorded' : `${grouped(differing)} ${verb}, in ${counted(differences, 'place')}`;
  const records = `records ${grouped(fromSeq)} to ${grouped(toSeq)}`;
  const checked =
    fromSeq > toSeq
      ? [`${name}: nothing to check: what is replayed ends before record ${grouped(toSeq + 1)}`]
      : [
          `${name}: ${counted(decisions, 'decision')} checked of ${grouped(journaled)} journaled (${records}): ${same}`,
          `  with ${counted(events, 'record')} that followed and ${counted(requests, 'request')} of effects, in ${(tookMs / 1000).toFixed(1)} s${perSecond}`,
        ];
  return [
    ...tally.unreadable.map(
      ({ seq, why, endsAt }) =>
        `${name}: record ${grouped(seq)} cannot be read${endsAt === undefined ? ' and was passed over' : ', so nothing from it on was decided'}: ${why}`,
    ),
    ...begun,
    ...checked,
  ];
};

const START_WORDS = { snapshot: 'its snapshot', fold: 'folding what is left' } as const;
