/**
 * What a hosts.toml may say, as schemas: its words for servers, what each must be, and what is meant where it says
 * nothing. The messages name the key. Takes the text of one: opens no file, and none of those that are named in it.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { parse, type TomlTable } from 'smol-toml';
import * as z from 'zod';
import { messageOf } from '../../../domain/model/errors.ts';
import { isObject, type JsonObject } from '../../../domain/values/json.ts';

export type HostCapability = 'pull' | 'resolve' | 'push';

type Table = JsonObject;

const everything: ReadonlySet<HostCapability> = new Set(['pull', 'resolve', 'push']);

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Go's form of a duration: "1.5s", "1m30s". null for anything else. */
export const parseDuration = (text: string): number | null => {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return null;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (unitMs[unit ?? ''] ?? 0), 0);
};

const isTable = (value: unknown): value is Table => isObject(value) && !(value instanceof Date);

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : [value]);

const areTexts = (values: readonly unknown[]): boolean => values.every((value) => typeof value === 'string');

/** One text, or a list of them. */
const textsOf = (key: string) =>
  z
    .custom<string | readonly string[]>((value) => areTexts(asList(value)), `${key} is not text`)
    .transform((value) => (typeof value === 'string' ? [value] : value));

const flagOf = (key: string) => z.boolean(`${key} is neither true nor false`).default(false);

/** What containerd asks a server for besides, and nobody here does. */
const NOT_ASKED_FOR: ReadonlySet<string> = new Set(['referrers']);

const capabilitiesSchema = textsOf('capabilities').transform((words, context) => {
  const named = new Set(words.map((word) => word.toLowerCase())).difference(NOT_ASKED_FOR);
  const [unknown] = named.difference(everything);
  if (unknown !== undefined)
    context.addIssue({ code: 'custom', message: `there is no capability ${JSON.stringify(unknown)}` });
  return words.length === 0 ? everything : (named as ReadonlySet<HostCapability>);
});

const canBeSent = (name: string, values: readonly unknown[]): boolean => {
  try {
    validateHeaderName(name);
    for (const value of values) validateHeaderValue(name, String(value));
    return true;
  } catch {
    return false;
  }
};

const headerSchema = z.custom<Table>(isTable, 'header is not a table').transform((header, context) => {
  const names = Object.keys(header);
  const bad = names.find((name) => !areTexts(asList(header[name])));
  const unfit = names.find((name) => !canBeSent(name, asList(header[name])));
  if (bad !== undefined) context.addIssue({ code: 'custom', message: `${bad} is not text` });
  else if (unfit !== undefined)
    context.addIssue({
      code: 'custom',
      message: `header ${JSON.stringify(unfit)} has a name or a value that cannot be sent`,
    });
  return Object.fromEntries(names.map((name) => [name, asList(header[name]) as readonly string[]]));
});

/** Certificate files, each alone or with the file of its key. */
const clientSchema = z
  .custom<string | readonly (string | readonly string[])[]>(
    (value) => asList(value).every((pair) => areTexts(asList(pair)) && asList(pair).length > 0),
    'client is neither a file nor pairs of files',
  )
  .transform((value) => asList(value).map((pair) => asList(pair) as readonly string[]));

const timeoutSchema = z
  .custom<string>(
    (value) => typeof value === 'string' && parseDuration(value) !== null,
    'dial_timeout is not a duration like "5s"',
  )
  .transform((text) => parseDuration(text) ?? 0);

/** What is said of a server. */
const serverSchema = z.object({
  capabilities: capabilitiesSchema.default(everything),
  ca: textsOf('ca').default([]),
  client: clientSchema.default([]),
  skip_verify: flagOf('skip_verify'),
  header: headerSchema.default({}),
  override_path: flagOf('override_path'),
  /** In milliseconds; 0: as long as usual. */
  dial_timeout: timeoutSchema.default(0),
});

export type ServerWords = z.output<typeof serverSchema>;

/** The servers that stand for a registry, in order, and the registry itself where the file names it. */
const hostsSchema = z.object({
  server: z.string('server is not text').optional(),
  host: z
    .custom<Table>(isTable, 'host is not a table of servers')
    .transform((hosts, context) => {
      for (const [address, fields] of Object.entries(hosts))
        if (!isTable(fields))
          context.addIssue({ code: 'custom', message: `host.${JSON.stringify(address)} is not a table` });
      return Object.entries(hosts);
    })
    .default([]),
});

const SERVER_KEYS: ReadonlySet<string> = new Set(Object.keys(serverSchema.shape));
const FILE_KEYS: ReadonlySet<string> = new Set([...SERVER_KEYS, ...Object.keys(hostsSchema.shape)]);

const tableOf = (text: string): TomlTable => {
  try {
    return parse(text);
  } catch (error) {
    throw new Error(messageOf(error).split('\n', 1).join(''), { cause: error });
  }
};

const readAs = <T>(schema: z.ZodType<T>, content: unknown): T => {
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  throw new Error(parsed.error.issues[0]?.message ?? 'it is not as it must be');
};

/** A server and what is said of it. */
export type SaidServer = readonly [address: string, words: ServerWords];

/** What a hosts.toml says. */
interface SaidHosts {
  readonly hosts: readonly SaidServer[];
  /** The address of the registry itself, where the file has one. */
  readonly server: string | undefined;
  /** What is said of that. */
  readonly own: ServerWords;
}

/** Throws an Error that says what is wrong. */
export const parseHostsFile = (text: string): SaidHosts => {
  const table = tableOf(text);
  const { server, host } = readAs(hostsSchema, table);
  const hosts = host.map(([address, content]) => [address, readAs(serverSchema, content)] as const);
  return { hosts, server, own: readAs(serverSchema, table) };
};

/** Of the file and of its servers, in its order. Throws an Error when it is not TOML. */
export const unknownKeysIn = (text: string): readonly string[] => {
  const table = tableOf(text);
  const unknownIn = (fields: object, known: ReadonlySet<string>): string[] =>
    Object.keys(fields).filter((key) => !known.has(key));
  const hosts = isTable(table.host) ? Object.values(table.host).filter((host) => isTable(host)) : [];
  return [...unknownIn(table, FILE_KEYS), ...hosts.flatMap((host) => unknownIn(host, SERVER_KEYS))];
};
