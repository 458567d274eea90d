/** `scribe sql`: one question to the journal in SQL, where sqlite3 is not installed or a limit on its time is wanted. */
import { text } from 'node:stream/consumers';
import { parseDurationMs } from '../config/units.ts';
import { readAhead } from '../journal/read-ahead.ts';
import { command, misuse } from './command.ts';
import { jsonLine } from './format.ts';
import { type Output, write } from './io.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { type AnswerCell, ask } from './sql/ask.ts';
import { createTable } from './table.ts';
import { wholeJournal } from './whole-journal.ts';

const CELL_WIDTH_MAX = 80;
const DEFAULT_LIMIT = '60s';

const showAsTable = async (output: Output, answer: AsyncIterable<readonly AnswerCell[]>): Promise<void> => {
  let table: ReturnType<typeof createTable> | null = null;
  for await (const row of answer) {
    if (table === null)
      table = createTable(
        output,
        row.map((title) => ({ title: String(title), widthMax: CELL_WIDTH_MAX })),
      );
    else await table.add(row.map((cell) => (cell === null ? '' : String(cell))));
  }
  await table?.flush();
};

/** An object has each name once: of columns that have the same, later ones are numbered, as SQLite does within a query. */
const distinct = (titles: readonly string[]): string[] => {
  const names: string[] = [];
  for (const title of titles) {
    let name = title;
    for (let number = 1; names.includes(name); number += 1) name = `${title}:${number}`;
    names.push(name);
  }
  return names;
};

const showAsJson = async (output: Output, answer: AsyncIterable<readonly AnswerCell[]>): Promise<void> => {
  let columns: readonly string[] | null = null;
  for await (const row of answer) {
    if (columns === null) columns = distinct(row.map(String));
    else await write(output, jsonLine(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null]))));
  }
};

export const sql = command({
  name: 'sql',
  summary: 'ask the journal in SQL',
  description: [
    'Answers one question in SQL from the journal, with the daemon up or down; nothing can be changed. QUERY is read from standard input when it is not given.',
    'There are the views calls, exits, pods, containers, exec_sessions, image_pulls and nri_decisions, and journal with every record; docs/sql.md describes their columns. sqlite3 -readonly reads the same.',
    'With --json every row is an object of its own; integers beyond 2^53, such as at, are text. Of columns with the same name the second is NAME:1.',
  ],
  operands: { name: '[QUERY]', count: 1, countMin: 0 },
  options: {
    root: rootOption,
    config: configOption,
    'time-limit': {
      value: 'DURATION',
      about: `Ends a query that takes longer: 500ms, 90s, 10m. ${DEFAULT_LIMIT} unless told.`,
    },
    json: jsonOption,
  },
  examples: [
    [
      'scribe sql "SELECT time, caller, pod, command FROM exec_sessions WHERE method = \'ExecSession\'"',
      'Who looked inside which pod, and with what.',
    ],
    [
      'scribe sql "SELECT namespace, container, reason, count(*) FROM exits GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 10"',
      'Which containers end most often, and why.',
    ],
  ],
  readsIn: readsInRoot,
  run: async (values, [operand], io) => {
    const limit = values['time-limit'] ?? DEFAULT_LIMIT;
    const timeLimitMs = parseDurationMs(limit);
    if (timeLimitMs === null || timeLimitMs === 0)
      throw misuse(`--time-limit ${limit}: that is no duration; 90s and 10m are.`);
    const journalPath = await readableJournal(await rootOf(values));
    const question = operand ?? (await text(io.stdin));
    if (question.trim() === '') throw misuse('QUERY is empty: give it as an argument or on standard input.');
    // Views look names up from all over it.
    void readAhead(journalPath, 'start');
    const stop = new AbortController();
    // Nobody else ends the child, which would hold its moment of the journal open for as long as it reckons.
    io.beforeEnd?.(async () => stop.abort());
    // Its first row names the columns.
    let rows = -1;
    const answer = async function* (): ReturnType<typeof ask> {
      for await (const row of ask({ journalPath, sql: question, timeLimitMs, signal: stop.signal })) {
        rows += 1;
        yield row;
      }
    };
    try {
      await (values.json === true ? showAsJson : showAsTable)(io.stdout, answer());
    } finally {
      const asked = operand === undefined ? { question } : {};
      void io.recordRead?.({ ...wholeJournal(journalPath), ...asked, shown: Math.max(0, rows) });
    }
    return 0;
  },
});
