/** All that scribe gives out of a journal, as text, for tests that look in it for what may not be there (C12). */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Level } from '../../src/cli/export/level.ts';
import type { Owner } from '../support/cleanup.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { scribe } from './support.ts';
import { serveJournal } from './ui/served.ts';

export const FORMATS = ['json', 'ocsf', 'kubernetes-audit', 'cloudevents', 'otlp'] as const;
const LEVELS: readonly Level[] = ['metadata', 'request', 'request-response'];
const VIEWS = ['calls', 'exits', 'pods', 'containers', 'exec_sessions', 'image_pulls', 'journal'];
/** Answers that take a fold of the journal are asked for at so many of its records. */
const FOLDS_ASKED = 12;

export interface Told {
  readonly by: string;
  readonly text: string;
}

export interface Asked {
  readonly rootDir: string;
  /** The newest record that is asked about. */
  readonly headSeq: number;
  /** What `why` is asked about: ids. */
  readonly things: readonly string[];
}

async function* saying(commands: readonly (readonly string[])[], rootDir: string): AsyncGenerator<Told> {
  for (const words of commands) {
    const { stdout, stderr, exitStatus } = await scribe([...words, '--root', rootDir]);
    assert.equal(exitStatus, 0, `${words.join(' ')}: ${stderr}`);
    yield { by: words.join(' '), text: stdout + stderr };
  }
}

/** What is given away at one level: exports, a bundle, and every answer that the page gets. */
export async function* givenAwayAt(owner: Owner, level: Level, { rootDir, headSeq }: Asked): AsyncGenerator<Told> {
  const exports = FORMATS.map((format) => ['export', '--level', level, '--format', format]);
  yield* saying(exports, rootDir);
  yield* bundleAt(owner, rootDir, level);
  yield { by: `the page at level ${level}`, text: await pageAt(owner, rootDir, level, headSeq) };
}

/** What every command says, at every level that it has, and every answer that the page gets. */
export async function* outputsOf(owner: Owner, asked: Asked): AsyncGenerator<Told> {
  const { rootDir, headSeq, things } = asked;
  const commands = [
    ...[
      ['history', '--reads', '--events'],
      ['history', '--reads', '--events', '--json'],
      ['history', '--exec'],
    ],
    ...[['report'], ['report', '--json'], ['report', 'execs', '--json']],
    ...things.flatMap((thing) => [
      ['why', thing],
      ['why', thing, '--json'],
      ['history', '--container', thing],
    ]),
    ...['pods', 'containers', 'images'].map((what) => ['at', String(headSeq), '--json', 'get', what]),
    ...[['diff', '1', String(headSeq)], ['diff', '1', String(headSeq), '--json'], ['replay'], ['replay', '--json']],
    ...[['journal', 'info'], ['journal', 'info', '--json'], ['verify']],
    ...VIEWS.map((view) => ['sql', '--json', `SELECT * FROM ${view}`]),
  ];
  yield* saying(commands, rootDir);
  for (const level of LEVELS) yield* givenAwayAt(owner, level, asked);
}

async function* bundleAt(owner: Owner, rootDir: string, level: Level): AsyncGenerator<Told> {
  const dir = await tempDir(owner);
  const output = join(dir, 'bundle.tar.gz');
  const { exitStatus, stderr } = await scribe([
    ...['bundle', '--root', rootDir, '--since', '1', '--level', level, '--output', output],
  ]);
  assert.equal(exitStatus, 0, stderr);
  await run(['tar', '-xzf', output, '-C', dir]);
  const [inside = ''] = readdirSync(dir).filter((name) => name.startsWith('scribe-'));
  for (const name of readdirSync(join(dir, inside)))
    yield { by: `${name} of a bundle at level ${level}`, text: readFileSync(join(dir, inside, name), 'utf8') };
}

async function pageAt(owner: Owner, rootDir: string, level: Level, headSeq: number): Promise<string> {
  const { get, frames } = await serveJournal(owner, join(rootDir, 'journal.db'), level);
  const answers: unknown[] = [(await frames().next()).value?.head];
  const every = Math.ceil(headSeq / FOLDS_ASKED);
  for (let seq = headSeq; seq > 0; seq -= 1) {
    answers.push(await get(`record?seq=${seq}`), await get(`entries?seqs=${seq}`));
    if ((headSeq - seq) % every === 0)
      for (const path of ['why?seq', 'at?seq']) answers.push(await get(`${path}=${seq}`));
  }
  return JSON.stringify(answers);
}
