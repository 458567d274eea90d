/**
 * The reporter that scripts/test.ts gives to each test file: one JSON line per finished test and per message of a
 * test (t.diagnostic). Must not print for people; counting and showing is the runner's part.
 */
import { inspect } from 'node:util';

/** What a test file reports to the runner. */
export type TestReport =
  | {
      readonly kind: 'passed' | 'failed' | 'skipped';
      readonly name: string;
      readonly durationMs: number;
      /** The error as text, '' unless it failed. */
      readonly error: string;
    }
  | { readonly kind: 'said'; readonly message: string };

interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name: string;
    readonly message: string;
    readonly nesting: number;
    readonly skip?: string | boolean;
    readonly todo?: string | boolean;
    readonly file?: string;
    readonly details?: {
      readonly duration_ms: number;
      readonly type?: 'suite' | 'test';
      readonly error?: Error & { readonly failureType?: string };
    };
  };
}

const isSet = (mark: string | boolean | undefined): boolean => mark !== undefined && mark !== false;

/** The runner's own totals ("tests 3", "duration_ms 12.5") come as diagnostics too; nobody needs them twice. */
const ownTotals = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

const reportOf = ({ type, data }: TestEvent): TestReport | null => {
  const details = data.details;
  if (type === 'test:diagnostic') {
    return ownTotals.test(data.message) ? null : { kind: 'said', message: data.message };
  }
  if (type === 'test:pass' && details?.type !== 'suite') {
    const kind = isSet(data.skip) || isSet(data.todo) ? 'skipped' : 'passed';
    return { kind, name: data.name, durationMs: details?.duration_ms ?? 0, error: '' };
  }
  if (type === 'test:fail') {
    // A suite fails because of a test that has been reported already, unless one of its hooks failed.
    const error = details?.error;
    if (details?.type === 'suite' && error?.failureType === 'subtestsFailed') return null;
    const text = inspect(error?.cause ?? error, { depth: 4 });
    return { kind: 'failed', name: data.name, durationMs: details?.duration_ms ?? 0, error: text };
  }
  return null;
};

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    const line = reportOf(event);
    if (line !== null) yield `${JSON.stringify(line)}\n`;
  }
}
