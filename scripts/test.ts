/**
 * Runs the test files and ends with one line "N passed, N failed, N skipped". Each file is a process of its own in a
 * process group of its own, bounded in time, and the whole run is too. Files whose header says "Runs behind" (they only
 * compute) take what the others leave of the processors; those that say "Runs alone" (they measure, or need the machine
 * to themselves) run one at a time after all others. A file that failed beside others gets a second run alone, and is
 * named as unsteady if that passes; one whose header says "Never repeated" (fresh seeds: any failure is a finding) does
 * not. Must not know what is tested.
 *
 *   node scripts/test.ts --help
 *
 * A run of all files leaves a list of the tests that passed (lib/passed-tests.ts).
 */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { glob, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { wordsOrEnd } from './lib/command-line.ts';
import { passedPath, type PassedTests } from './lib/passed-tests.ts';
import type { TestReport } from './lib/test-reporter.ts';

const usage = `node scripts/test.ts [PART-OF-PATH ...]

Runs the test files whose path holds one of the parts, or all of them: node scripts/test.ts journal/verify streaming.
npm test installs what they need before it runs all; sh scripts/setup.sh test installs it and runs none.
Ends with status 1 where a test failed, or none ran, and 2 when it can't tell what is wanted.`;

const top = join(import.meta.dirname, '..');
const fileTimeoutMs = 10 * 60_000;
const totalTimeoutMs = 28.5 * 60_000;
const outputLinesMax = 60;
const lineCharsMax = 400;
const slowestShown = 10;
/** How a file ends whose tests failed, and all of it was reported. */
const failingTests = 'ended with exit status 1';

interface FileResult {
  readonly file: string;
  readonly durationMs: number;
  readonly passed: number;
  readonly passedNames: readonly string[];
  readonly failed: number;
  readonly skipped: number;
  /** It failed beside others and passed when it was run again. */
  readonly unsteady?: true;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const indent = (text: string): string => text.replace(/^/gm, '    ');

const shorten = (line: string): string =>
  line.length <= lineCharsMax
    ? line
    : `${line.slice(0, lineCharsMax)} ... ${line.length - lineCharsMax} characters more`;

const firstLines = (text: string): string => {
  const lines = text.trimEnd().split('\n').map(shorten);
  const dropped = lines.length - outputLinesMax;
  return dropped <= 0 ? lines.join('\n') : [...lines.slice(0, outputLinesMax), `... ${dropped} lines more`].join('\n');
};

const lastLines = (text: string): string => {
  const lines = text.trimEnd().split('\n').map(shorten);
  const dropped = lines.length - outputLinesMax;
  return dropped <= 0 ? lines.join('\n') : [`... ${dropped} lines before`, ...lines.slice(dropped)].join('\n');
};

const parseReports = (text: string): TestReport[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as TestReport);

/**
 * The lowest share of the processors. A file is a session of its own, and where the kernel shares processors out among
 * sessions (sched(7), autogroup) niceness counts within one alone, so the session is told too.
 */
const LOWEST_SHARE = ['sh', '-c', '(echo 19 >/proc/self/autogroup) 2>/dev/null; exec nice -n 19 "$@"', 'sh'] as const;

type Manner = 'beside others' | 'behind others' | 'alone';

/** Runs one file to its end or its time limit; whatever it leaves of its process group is killed. */
const runProcess = async (
  file: string,
  dir: string,
  { manner, timeoutMs }: { readonly manner: Manner; readonly timeoutMs: number },
): Promise<{ ended: string; output: string }> => {
  const outputPath = join(dir, 'output');
  const output = await open(outputPath, 'w');
  const [command, ...commandArgs] =
    manner === 'behind others' ? [...LOWEST_SHARE, process.execPath] : [process.execPath];
  const child = spawn(
    command,
    [
      ...commandArgs,
      '--enable-source-maps',
      `--test-reporter=${join(import.meta.dirname, 'lib/test-reporter.ts')}`,
      `--test-reporter-destination=${join(dir, 'reports')}`,
      file,
    ],
    {
      cwd: top,
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
      env: { NODE_COMPILE_CACHE: join(top, 'node_modules/.cache/scribe-test'), ...process.env },
    },
  );
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nothing of the group is left, as it should be.
    }
  };
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup();
  }, timeoutMs);
  const abandon = (): void => {
    killGroup();
    rmSync(dir, { recursive: true, force: true });
  };
  running.add(abandon);
  const ended = await new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(`could not start: ${error.message}`));
    child.on('exit', (code, signal) => {
      if (timedOut) resolve(`did not end within ${seconds(timeoutMs)}`);
      else resolve(code === 0 ? '' : `ended with ${signal ?? `exit status ${code}`}`);
    });
  });
  clearTimeout(timer);
  running.delete(abandon);
  killGroup();
  await output.close();
  return { ended, output: await readFile(outputPath, 'utf8') };
};

/** Ends a file that runs, with all it has started, and leaves nothing of it: files have no terminal that ends them. */
const running = new Set<() => void>();

const runFile = async (file: string, manner: Manner, deadlineMs: number): Promise<FileResult> => {
  const startedMs = performance.now();
  const dir = await mkdtemp(join(tmpdir(), 'scribe-test-'));
  try {
    // How long a file takes behind others is theirs to say.
    const leftMs = deadlineMs - startedMs;
    const timeoutMs = Math.max(1, manner === 'behind others' ? leftMs : Math.min(fileTimeoutMs, leftMs));
    const { ended, output } = await runProcess(file, dir, { manner, timeoutMs });
    const durationMs = performance.now() - startedMs;
    const reports = parseReports(await readFile(join(dir, 'reports'), 'utf8').catch(() => ''));
    const count = (kind: TestReport['kind']): number => reports.filter((report) => report.kind === kind).length;
    const silent = reports.every((report) => report.kind === 'said');
    const problem = ended !== '' && count('failed') === 0 ? ended : silent ? 'has no tests' : '';
    const failed = count('failed') + (problem === '' ? 0 : 1);
    const skipped = count('skipped');
    const counts = `${count('passed')} passed${failed > 0 ? `, ${failed} failed` : ''}${skipped > 0 ? `, ${skipped} skipped` : ''}`;
    const lines = [`${failed > 0 ? 'FAILED' : 'ok    '} ${file} (${counts}, ${seconds(durationMs)})`];
    for (const report of reports) {
      if (report.kind === 'said') lines.push(indent(report.message));
      if (report.kind === 'failed') lines.push(indent(`FAILED: ${report.name}\n${indent(firstLines(report.error))}`));
    }
    if (problem !== '') lines.push(indent(`FAILED: the file ${problem}`));
    else if (ended !== '' && ended !== failingTests) lines.push(indent(`the file ${ended}`));
    if (output.trim() !== '') lines.push(indent(lastLines(output)));
    console.log(lines.join('\n'));
    const passedNames = reports.flatMap((report) => (report.kind === 'passed' ? [report.name] : []));
    return { file, durationMs, passed: count('passed'), passedNames, failed, skipped };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

const runAll = async (
  files: readonly string[],
  { manner, atOnce, deadlineMs }: { readonly manner: Manner; readonly atOnce: number; readonly deadlineMs: number },
): Promise<FileResult[]> => {
  const results: FileResult[] = [];
  const queue = [...files];
  const worker = async (): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      results.push(await runFile(file, manner, deadlineMs));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
};

const findFiles = async (parts: readonly string[]): Promise<string[]> => {
  const files = await Array.fromAsync(glob('test/**/*.test.ts', { cwd: top }));
  return files.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part))).sort();
};

const headerSays = async (file: string, words: string): Promise<boolean> =>
  (await readFile(join(top, file), 'utf8')).slice(0, 2000).includes(words);

const mannerOf = async (file: string): Promise<Manner> => {
  if (await headerSays(file, 'Runs alone')) return 'alone';
  return (await headerSays(file, 'Runs behind')) ? 'behind others' : 'beside others';
};

/** What failed on a busy machine may pass on a quiet one: it is run again, alone, and that run counts. */
const repeatFailed = async (results: readonly FileResult[], deadlineMs: number): Promise<FileResult[]> => {
  const final: FileResult[] = [];
  for (const result of results) {
    if (result.failed === 0 || (await headerSays(result.file, 'Never repeated'))) {
      final.push(result);
      continue;
    }
    console.log(`again, alone: ${result.file}`);
    const again = await runFile(result.file, 'alone', deadlineMs);
    final.push(again.failed === 0 ? { ...again, unsteady: true } : again);
  }
  return final;
};

const writePassed = async (results: readonly FileResult[]): Promise<void> => {
  const passed: PassedTests = Object.fromEntries(results.map(({ file, passedNames }) => [file, passedNames]));
  await mkdir(dirname(passedPath), { recursive: true });
  await writeFile(passedPath, `${JSON.stringify(passed, null, 2)}\n`);
};

const main = async (wanted: readonly string[]): Promise<void> => {
  const startedMs = performance.now();
  const deadlineMs = startedMs + totalTimeoutMs;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      for (const abandon of running) abandon();
      process.exit(130);
    });
  }
  const files = await findFiles(wanted);
  if (files.length === 0) console.error(`There is no test file whose path holds ${wanted.join(' or ')}.`);
  const manners = await Promise.all(files.map(mannerOf));
  const runThose = (manner: Manner, atOnce: number): Promise<FileResult[]> =>
    runAll(
      files.filter((_, index) => manners[index] === manner),
      { manner, atOnce, deadlineMs },
    );
  const together = await Promise.all([runThose('beside others', availableParallelism()), runThose('behind others', 1)]);
  const first = [...together.flat(), ...(await runThose('alone', 1))];
  const results = await repeatFailed(first, deadlineMs);
  if (wanted.length === 0) await writePassed(results);
  const slowest = [...results].sort((a, b) => b.durationMs - a.durationMs).slice(0, slowestShown);
  console.log(`\nslowest of ${results.length} files, ${seconds(performance.now() - startedMs)} in all:`);
  for (const { file, durationMs } of slowest) console.log(`  ${seconds(durationMs).padStart(8)}  ${file}`);
  // A pass at the second try may hide a race: it stands where whoever reads the summary sees it.
  const unsteady = results.filter((result) => result.unsteady === true);
  if (unsteady.length > 0) console.log(`\nUNSTEADY, failed beside others and passed alone (why is above):`);
  for (const { file } of unsteady) console.log(`  ${file}`);
  const sum = (key: 'passed' | 'failed' | 'skipped'): number =>
    results.reduce((total, result) => total + result[key], 0);
  console.log(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
  process.exitCode = sum('failed') > 0 || results.length === 0 ? 1 : 0;
};

// A word that is no option is part of a path; an option that is not known is told as such.
await main(wordsOrEnd({ usage, takesWords: true }));
