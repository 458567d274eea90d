/**
 * Answers one question in SQL, in a process of its own that can be ended in the middle of it: SQLite does not stop when
 * it is asked to. Takes the journal's path as its argument and the question on standard input; writes an array of JSON
 * per line, the names of the columns first. What went wrong goes to standard error, as one sentence.
 */
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { messageOf } from '../../domain/model/errors.ts';
import { withRemedy } from '../damage.ts';
import { type Cell, openQueries, type Queries } from '../../journal/queries.ts';

const CHARS_HELD_MAX = 64 * 1024;

/** Integers that JSON's readers hold exactly are numbers, others text, as everywhere in scribe's JSON; bytes are hex. */
const jsonCell = (cell: Cell): string | number | null => {
  if (typeof cell === 'bigint')
    return cell >= Number.MIN_SAFE_INTEGER && cell <= Number.MAX_SAFE_INTEGER ? Number(cell) : String(cell);
  return cell instanceof Uint8Array ? Buffer.from(cell).toString('hex') : cell;
};

/** Those that JSON leaves as they are, and whoever reads lines takes for their ends (node:readline). */
const LINE_ENDS = /[\u2028\u2029]/g;

const lineOf = (row: readonly unknown[]): string =>
  `${JSON.stringify(row).replace(LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}\n`;

const answer = async (queries: Queries, sql: string): Promise<void> => {
  const { columns, rows } = queries.ask(sql);
  let held = lineOf(columns);
  const flush = async (): Promise<void> => {
    const text = held;
    held = '';
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  };
  for (const row of rows) {
    held += lineOf(row.map(jsonCell));
    if (held.length > CHARS_HELD_MAX) await flush();
  }
  await flush();
};

/** A journal that an older scribe wrote has them for this connection alone. */
const VIEWS = `SELECT name FROM sqlite_schema WHERE type = 'view'
  UNION SELECT name FROM sqlite_temp_schema WHERE type = 'view' ORDER BY name`;
const COLUMNS = 'SELECT name FROM pragma_table_info(?)';

/** What there is in place of what there is not: the columns of the views that are asked, or the views. */
const namesInstead = (queries: Queries, sql: string, missing: string): string => {
  const names = (question: string, ...values: string[]): string[] =>
    Array.from(queries.ask(question, values).rows, ([name]) => String(name));
  const views = names(VIEWS);
  if (missing === 'table') return `There are ${views.join(', ')}.`;
  const asked = views.filter((view) => new RegExp(`\\b${view}\\b`, 'i').test(sql));
  return asked.map((view) => `${view} has ${names(COLUMNS, view).join(', ')}.`).join(' ');
};

/** What SQLite says of a question, and by which names it can be asked. */
const saidOf = (error: unknown, queries: Queries, sql: string): string => {
  const message = withRemedy(messageOf(error));
  const [, missing] = /^no such (table|column): /.exec(message) ?? [];
  if (missing === undefined) return message;
  return `${message}. ${[namesInstead(queries, sql, missing), 'docs/sql.md describes them.'].filter(Boolean).join(' ')}`;
};

const answerOf = async (path: string, sql: string): Promise<void> => {
  const queries = openQueries(path);
  try {
    await answer(queries, sql);
  } catch (error) {
    throw new Error(`The journal does not answer that: ${saidOf(error, queries, sql)}`, { cause: error });
  } finally {
    queries.close();
  }
};

try {
  await answerOf(process.argv[2] ?? '', await text(process.stdin));
} catch (error) {
  process.stderr.write(messageOf(error));
  process.exitCode = 1;
}
