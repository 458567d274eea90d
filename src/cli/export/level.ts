/**
 * How much of a record is exported. What a client chose freely (commands, arguments, annotations, labels, paths, messages)
 * may hold a secret that nobody told the journal of, so at the default level only fields are let through that are known to
 * hold none: who, which method, which object by its names and ids, when, and how it ended. Pure.
 */
import { AUDIT_LEVELS, type AuditLevel } from '../../domain/model/audit-policy.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { misuse } from '../command.ts';

/** As Kubernetes calls them in its audit policy. Each has all of the one before. */
export type Level = Exclude<AuditLevel, 'none'>;
const LEVELS: readonly Level[] = AUDIT_LEVELS.filter((level) => level !== 'none');

export const levelOption = {
  value: 'LEVEL',
  about:
    'How much of each record: metadata (default: who, what, which object, when, how it ended; no commands, arguments, labels or annotations), request (also what calls asked for) or request-response (all that was recorded).',
} as const;

export const parseLevel = (text: string = 'metadata'): Level => {
  const level = LEVELS.find((known) => known === text);
  if (level === undefined) throw misuse(`--level ${text}: there are ${LEVELS.join(', ')}.`);
  return level;
};

/** Values under these names are ids, names of objects, numbers and words of scribe's own. */
const LEAVES: ReadonlySet<string> = new Set([
  ...[
    'method',
    'rpc',
    'auditLevel',
    'code',
    'reason',
    'durationNs',
    'deadlineNs',
    'timeoutSeconds',
    'detached',
    'received',
  ],
  ...['pid', 'uid', 'executable', 'program', 'startTicks'],
  ...['id', 'newId', 'podSandboxId', 'containerId', 'imageId', 'allowedBy', 'runtimeHandler'],
  ...['name', 'namespace', 'attempt', 'image', 'userSpecifiedImage', 'port', 'plugin'],
  ...['exitStatus', 'exitCode', 'exitedAtNs', 'signal', 'killAtNs', 'oomKills', 'claimed', 'rebooted'],
  ...['stdinBytes', 'stdoutBytes', 'stderrBytes', 'toPodBytes', 'fromPodBytes'],
  ...['subcommand', 'toSeq', 'fromSeq', 'shown', 'times', 'differing'],
  ...['key', 'applied'],
  ...['kind', 'effect', 'segment', 'count', 'dropped', 'fromNs', 'toNs'],
  // Of a field that the contract did not know: where it was, and its size.
  ...['field', 'bytes'],
]);

/** What is looked into for them. */
const BRANCHES: ReadonlySet<string> = new Set([
  ...['request', 'caller', 'config', 'metadata', 'image', 'failure', 'response', 'exit', 'effects', 'changes'],
  'unknownFields',
]);

/** A failure, an exit and an end have reasons in scribe's own words; the one of a request is whatever somebody typed. */
const isTyped = (key: string, under: string): boolean => key === 'reason' && under === 'request';

/** Whether a value under this name, in an object under that one, is let through at the level metadata, and whether an object is looked into. */
export const isShownAtMetadata = (key: string, under: string): boolean => LEAVES.has(key) && !isTyped(key, under);
export const isLookedInto = (key: string): boolean => BRANCHES.has(key);

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const metadataOf = (value: object, under = ''): object => {
  if (Array.isArray(value)) return value.filter(isObject).map((item) => metadataOf(item, under));
  const kept = Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    if (isObject(inner)) return isLookedInto(key) ? [[key, metadataOf(inner, key)] as const] : [];
    return isShownAtMetadata(key, under) ? [[key, inner] as const] : [];
  });
  return Object.fromEntries(kept);
};

/** Of a journal that is not what was written; scribe verify says more. */
const UNREADABLE = { unreadable: true };

/** null: it is no JSON. */
export const parsedBody = (body: string): unknown => {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
};

/** A record's body as far as the level goes. */
export const bodyAt = (level: Level, { type, body }: Pick<JournalRecord, 'type' | 'body'>): object => {
  const parsed = parsedBody(body);
  if (!isObject(parsed)) return UNREADABLE;
  const isWhole = level === 'request-response' || (level === 'request' && type === 'call.received');
  return isWhole ? parsed : metadataOf(parsed);
};
