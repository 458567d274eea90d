/**
 * What a bundle leaves out of what it takes, so that it can be given away: what a client chose, and what may be a secret of
 * the configuration. Lets through what is known to be neither, as export/level.ts does. Pure.
 */
import type { Config } from '../../config/config.ts';
import type { Afterwards, CrashReport, WrittenRecord } from '../../daemon/crash-report.ts';
import { isObject } from '../../domain/values/json.ts';
import { namesPid } from '../../platform/linux/kernel-log.ts';
import { bodyAt, type Level } from '../export/level.ts';

export const LEFT_OUT = '(left out)';

/** A frame of a stack: where, and never what. */
const FRAME = /^\s+at /;
const URL_WITH_MORE = /^([a-z][a-z0-9+.-]*:\/\/)(?:[^@/]*@)?([^?#]*)[?#]?.*$/i;

/** User, password and query of a URL are left out. */
export const plainUrl = (text: string): string => text.replace(URL_WITH_MORE, '$1$2');

const withoutSecrets = (value: unknown): unknown => {
  if (typeof value === 'string') return plainUrl(value);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, key === 'options' ? keysOf(inner) : withoutSecrets(inner)]),
  );
};

/** Options of shims are whatever their shim takes. */
const keysOf = (options: unknown): unknown =>
  isObject(options) ? Object.fromEntries(Object.keys(options).map((key) => [key, LEFT_OUT])) : options;

/** By the keys of the file, with the defaults of those that are not written. */
export const configOf = ({ files, written }: Config): object => ({ files, config: withoutSecrets(written) });

const recordAt = (level: Level, record: WrittenRecord): object => ({
  ...record,
  body: bodyAt(level, { type: record.type, body: JSON.stringify(record.body) }),
});

/** Error messages quote what they stumbled on: below request-response only the frames of the stack are kept. */
export const crashReportAt = (level: Level, report: CrashReport): object => {
  const isWhole = level === 'request-response';
  return {
    ...report,
    what: isWhole ? report.what : LEFT_OUT,
    stack: isWhole
      ? report.stack
      : report.stack
          .split('\n')
          .filter((line) => FRAME.test(line))
          .join('\n'),
    records: report.records.map((record) => recordAt(level, record)),
    input: report.input === null ? null : recordAt(level, report.input),
    ...(report.afterwards === undefined || isWhole ? {} : { afterwards: afterwardsOf(report.afterwards) }),
  };
};

/** The OOM killer names whom it was called by, and whom it killed: of those only the daemon is not a client's. */
const afterwardsOf = ({ kernelLog, pid, ...rest }: Afterwards): object => ({
  ...rest,
  pid,
  kernelLog:
    'lines' in kernelLog ? { lines: kernelLog.lines.filter((line) => pid !== null && namesPid(line, pid)) } : kernelLog,
});

/** A line of JSON of the doctor: failures and findings quote those who reported them. */
export const doctorLineAt = (level: Level, line: object, quoting: readonly string[]): object => {
  const { check, status } = line as { readonly check?: string; readonly status?: string };
  const isQuoting = check !== undefined && quoting.includes(check) && status !== 'ok';
  return isQuoting && level !== 'request-response' ? { ...line, detail: LEFT_OUT } : line;
};

/** A row of a report: the program that was run is a client's word. */
export const reportLineAt = (level: Level, line: object): object => {
  if (level !== 'metadata') return line;
  return Object.fromEntries(Object.entries(line).filter(([key]) => key !== 'program'));
};
