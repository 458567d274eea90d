/**
 * What daemon and log keeper say to each other over the keeper's socket: one JSON object per line, requests with a
 * number and replies that repeat it. Checks every message and bounds its size. Loaded by both sides, so it must stay
 * small: no package, nothing that the keeper does not need.
 */
import { isAbsolute, join, normalize } from 'node:path';
import { codeOfReason, FailureError, type Failure, type FailureReason } from '../../domain/model/errors.ts';
import { isObject } from '../../domain/values/json.ts';
import type { AttachWish } from './attached-clients.ts';
import { LINE_BYTES_LIMIT } from './records.ts';
import type { KeptOutput, LogTrouble } from './types.ts';

/** Changes when a keeper of another version could misunderstand; it is then replaced. */
export const PROTOCOL_VERSION = 3;
/** So long the daemon waits for an answer. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** Longest request; three paths fit, even with every character escaped. */
export const REQUEST_BYTES_MAX = 128 * 1024;
/** Longest reply: the open containers of a full node, with their paths. */
export const REPLY_BYTES_MAX = 16 * 1024 * 1024;
const PATH_BYTES_MAX = 4095;
const ID_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$/;

/** Where the keeper in charge is found. */
export const servingPath = (dir: string): string => join(dir, 'sock');

/** Where a keeper that has just been started is found, by the token it was started with, once it listens. */
export const readyPath = (dir: string, token: string): string => join(dir, `${token}.ready`);

/** Where it binds its socket before. */
export const listeningPath = (dir: string, token: string): string => join(dir, `${token}.new`);

export type KeeperRequest =
  /** The first of every connection: from here on the keeper is in charge of the state directory. */
  | { readonly op: 'hello'; readonly protocol: number }
  | ({
      readonly op: 'open';
      /** A log that can never be opened fails the request; without it the output is dropped until it can. */
      readonly isNew: boolean;
    } & KeptOutput)
  | { readonly op: 'reopen'; readonly containerId: string; readonly logPath: string }
  | { readonly op: 'close'; readonly containerId: string; readonly timeoutMs: number }
  /** Makes this connection the output's: after the reply come frames (attached-clients.ts), and no more requests are taken. */
  | ({ readonly op: 'attach'; readonly containerId: string } & AttachWish)
  | { readonly op: 'list' }
  /** Which logs can't be written now. A keeper of before refuses it. */
  | { readonly op: 'troubles' }
  /** The daemon ends in order: with nothing open the keeper need not wait for another. */
  | { readonly op: 'bye' };

export type NumberedRequest = KeeperRequest & { readonly number: number };

/** What hello is answered with. */
export interface Greeting {
  readonly protocol: number;
  readonly pid: number;
  readonly startTicks: string;
  /** What it reads already; of an earlier daemon's time, or taken over from an earlier keeper. */
  readonly containers: readonly KeptOutput[];
  /** Of those taken over from a keeper that was killed: it may have read what it did not write. */
  readonly doubtful: readonly string[];
}

export type NumberedReply =
  | { readonly number: number; readonly result: unknown }
  | { readonly number: number; readonly failure: Failure };

const invalid = (what: string): FailureError =>
  new FailureError('InvalidField', `The log keeper was sent a request that it can't take: ${what}.`);

const parseId = (value: unknown): string => {
  if (typeof value === 'string' && ID_PATTERN.test(value)) return value;
  throw invalid('containerId is not an id');
};

const parsePath = (name: string, value: unknown): string => {
  const valid =
    typeof value === 'string' &&
    isAbsolute(value) &&
    normalize(value) === value &&
    !value.endsWith('/') &&
    !value.includes('\0') &&
    Buffer.byteLength(value) <= PATH_BYTES_MAX;
  if (valid) return value;
  throw invalid(`${name} is not an absolute, normalised path`);
};

const parseCount = (name: string, value: unknown): number => {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid(`${name} is not a count`);
};

/** What keepers of before this field split at; their state files do not have it. */
const EARLIER_LINE_BYTES_MAX = 16_384;

const parseLineBytesMax = (value: unknown): number => {
  const sizeBytes = value === undefined ? EARLIER_LINE_BYTES_MAX : parseCount('lineBytesMax', value);
  if (sizeBytes > 0 && sizeBytes <= LINE_BYTES_LIMIT) return sizeBytes;
  throw invalid(`lineBytesMax is not from 1 to ${LINE_BYTES_LIMIT}`);
};

/** Checks what open is given: ids are names, paths absolute and free of "..". */
export const parseKeptOutput = (value: unknown): KeptOutput => {
  if (!isObject(value)) throw invalid('open has no fields');
  const { containerId, stdoutFifo, stderrFifo, logPath, logDirectory, lineBytesMax } = value;
  return {
    containerId: parseId(containerId),
    stdoutFifo: parsePath('stdoutFifo', stdoutFifo),
    stderrFifo: stderrFifo === null ? null : parsePath('stderrFifo', stderrFifo),
    logPath: logPath === null ? null : parsePath('logPath', logPath),
    ...(logDirectory === undefined ? {} : { logDirectory: parsePath('logDirectory', logDirectory) }),
    lineBytesMax: parseLineBytesMax(lineBytesMax),
  };
};

const parseOperation = (value: Readonly<Record<string, unknown>>): KeeperRequest => {
  switch (value.op) {
    case 'hello':
      return { op: 'hello', protocol: parseCount('protocol', value.protocol) };
    case 'open':
      return { op: 'open', isNew: value.isNew === true, ...parseKeptOutput(value) };
    case 'reopen':
      return { op: 'reopen', containerId: parseId(value.containerId), logPath: parsePath('logPath', value.logPath) };
    case 'close':
      return {
        op: 'close',
        containerId: parseId(value.containerId),
        timeoutMs: parseCount('timeoutMs', value.timeoutMs),
      };
    case 'attach':
      return {
        op: 'attach',
        containerId: parseId(value.containerId),
        stdout: value.stdout === true,
        stderr: value.stderr === true,
      };
    case 'list':
      return { op: 'list' };
    case 'troubles':
      return { op: 'troubles' };
    case 'bye':
      return { op: 'bye' };
    default:
      throw invalid('op is unknown');
  }
};

/** The number of a request, by which even one that can't be taken is answered. */
export const numberOfRequest = (value: unknown): number => {
  if (!isObject(value)) throw invalid('it is not an object');
  return parseCount('number', value.number);
};

/** Throws FailureError InvalidField on anything but a well-formed request. */
export const parseRequest = (value: unknown): KeeperRequest => {
  if (!isObject(value)) throw invalid('it is not an object');
  return parseOperation(value);
};

const isReason = (value: unknown): value is FailureReason =>
  typeof value === 'string' && Object.hasOwn(codeOfReason, value);

/** Throws on anything but a reply. */
export const parseReply = (line: string): NumberedReply => {
  const value: unknown = JSON.parse(line);
  const number = numberOfRequest(value);
  if (!isObject(value) || !isObject(value.failure)) return { number, result: isObject(value) ? value.result : null };
  const { reason, message } = value.failure;
  return { number, failure: { reason: isReason(reason) ? reason : 'Bug', message: String(message) } };
};

/** Throws on a reply to hello that no keeper gives. */
export const parseGreeting = (value: unknown): Greeting => {
  if (!isObject(value) || !Array.isArray(value.containers) || typeof value.startTicks !== 'string')
    throw new FailureError('Bug', 'The log keeper answered hello with something else than a greeting.');
  return {
    protocol: parseCount('protocol', value.protocol),
    pid: parseCount('pid', value.pid),
    startTicks: value.startTicks,
    containers: value.containers.map(parseKeptOutput),
    // Keepers of before do not tell.
    doubtful: Array.isArray(value.doubtful) ? value.doubtful.map(parseId) : [],
  };
};

/** Throws on a reply to list that no keeper gives. */
export const parseIds = (value: unknown): readonly string[] => {
  if (!Array.isArray(value))
    throw new FailureError('Bug', 'The log keeper answered list with something else than ids.');
  return value.map(parseId);
};

const parseTrouble = (value: unknown): LogTrouble => {
  if (!isObject(value) || typeof value.why !== 'string')
    throw new FailureError('Bug', 'The log keeper answered troubles with something else than those.');
  return {
    containerId: parseId(value.containerId),
    logPath: parsePath('logPath', value.logPath),
    why: value.why,
    sinceMs: parseCount('sinceMs', value.sinceMs),
    lostRecords: parseCount('lostRecords', value.lostRecords),
  };
};

/** Throws on a reply to troubles that no keeper gives. */
export const parseTroubles = (value: unknown): readonly LogTrouble[] =>
  Array.isArray(value) ? value.map(parseTrouble) : [];

export const encodeLine = (message: NumberedRequest | NumberedReply): string => `${JSON.stringify(message)}\n`;
