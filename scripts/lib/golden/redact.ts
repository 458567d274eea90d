/**
 * A journal's records with nothing in them that clients chose freely, and yet decided as they were: each word that may be one of
 * theirs is another one, the same everywhere. What stays: what exports show at the same level, and the words that the deciders
 * themselves have, for they can tell no others apart. Texts for people are left out. Changes no number.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLookedInto, isShownAtMetadata, type Level } from '../../../src/cli/export/level.ts';
import { shownRecord } from '../../../src/cli/ui/redact.ts';
import type { Sequenced } from '../../../src/domain/model/records.ts';
import { sameJson } from '../../../src/domain/values/json.ts';
import { toJournalRecord } from '../../../src/engine/codec.ts';

const DOMAIN = join(import.meta.dirname, '../../../src/domain');
const LITERAL = /'([^'\s\\]{1,64})'/g;
/** What stands for itself in a path, a reference or a list. */
const WORD = /CAP_[A-Z_]+|sha256:[0-9a-f]{64}|[A-Za-z0-9][A-Za-z0-9-]*/g;
const PLAIN = /^(CAP_[A-Z_]+|sha256:[0-9a-f]{64}|\d{1,20}[A-Za-z]{0,2})$/;

/** Objects and lists of which clients and images choose everything. */
const FREE = new Set([
  'annotations',
  'labels',
  'args',
  'command',
  'cmd',
  'entrypoint',
  'env',
  'envs',
  'podAnnotations',
]);
/** Objects whose keys clients, images and plugins choose, too. */
const FREE_KEYED = /^(annotations|podAnnotations|labels|sysctls?|unified|simple|compound|options)$/;
const FIELD = /^[A-Za-z][A-Za-z0-9]{0,40}$/;
const ANNOTATIONS = new Set(['annotations', 'podAnnotations']);
/** Texts for people. */
const TEXTS = new Set(['message', 'problem', 'crash', 'error', 'text', 'reason']);
/** Facts of the machine and words of specifications, wherever they stand. */
const KEPT = new Set([
  'kernelRelease',
  'architecture',
  'cniVersion',
  'version',
  'type',
  'status',
  'hook',
  'permissions',
  'selinux',
  'runtimeType',
  'binaryName',
]);
const LEFT_OUT = '(left out)';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const wordsIn = (text: string): string[] => text.match(WORD) ?? [];

/** The words that the sources of the deciders have as text. */
const vocabulary = (): Set<string> =>
  new Set(
    globSync('**/*.ts', { cwd: DOMAIN }).flatMap((name) =>
      [...readFileSync(join(DOMAIN, name), 'utf8').matchAll(LITERAL)].flatMap(([, literal = '']) => wordsIn(literal)),
    ),
  );

/** Words that exports show at the default level: names and ids. */
const shownWords = (value: unknown, key: string, under: string, isOpen: boolean, found: Set<string>): void => {
  if (typeof value === 'string' && isOpen && isShownAtMetadata(key, under))
    for (const word of wordsIn(value)) found.add(word);
  if (Array.isArray(value)) for (const item of value) shownWords(item, isObject(item) ? key : '', under, isOpen, found);
  else if (isObject(value))
    for (const [name, inner] of Object.entries(value))
      shownWords(inner, name, key, isOpen && (!isObject(inner) || isLookedInto(name)), found);
};

export interface Redaction {
  readonly tell: <R extends Sequenced>(record: R) => R;
  /** As far as what is told of both can be the same. */
  readonly isSame: (told: Sequenced, decided: Sequenced) => boolean;
}

/** @param records  all that will be told */
export const redactionOf = (level: Level, records: readonly Sequenced[]): Redaction => {
  const known = vocabulary();
  const shown = new Set<string>();
  for (const { stream, body } of records) {
    for (const word of wordsIn(stream)) shown.add(word);
    shownWords(body, '', '', true, shown);
  }
  const others = new Map<string, string>();
  const otherFor = (text: string): string => {
    const other = others.get(text) ?? `r${others.size + 1}`;
    others.set(text, other);
    return other;
  };
  const isKnown = (word: string): boolean => known.has(word) || shown.has(word);
  const words = (text: string): string =>
    text.replace(WORD, (word) => (isKnown(word) || PLAIN.test(word) ? word : otherFor(word)));
  // Decisions read lists of plugins in values of annotations; arguments and the like they only hand on.
  const freeWords = (text: string): string => text.replace(WORD, (word) => (isKnown(word) ? word : otherFor(word)));

  const hide = (value: unknown, key: string, under: string, isOpen: boolean, isFree: boolean): unknown => {
    if (KEPT.has(key) && !isFree) return value;
    if (Array.isArray(value)) return value.map((item) => hide(item, isObject(item) ? '' : key, under, isOpen, isFree));
    if (isObject(value))
      return Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [
          FREE_KEYED.test(key) || !FIELD.test(name) ? words(name) : name,
          hide(
            inner,
            ANNOTATIONS.has(key) ? key : name,
            key,
            isOpen && (!isObject(inner) || isLookedInto(name)),
            isFree || FREE.has(name),
          ),
        ]),
      );
    if (typeof value !== 'string' || value === '') return value;
    if (isOpen && isShownAtMetadata(key, under)) return value;
    if (TEXTS.has(key) && !known.has(value)) return LEFT_OUT;
    if (ANNOTATIONS.has(key)) return freeWords(value);
    if (isFree) return known.has(value) ? value : otherFor(value);
    return words(value);
  };

  const isWhole = (type: string): boolean =>
    level === 'request-response' || (level === 'request' && type === 'call.received');
  // Of both, what a page shows at the default level: kinds, reasons, codes, numbers, names, and which fields there are.
  const outline = (record: Sequenced): unknown =>
    JSON.parse(shownRecord('metadata', toJournalRecord(record, '')).body) as unknown;
  return {
    tell: (record) =>
      isWhole(record.type) ? record : { ...record, body: hide(record.body, '', '', true, false) as typeof record.body },
    isSame: (told, decided) =>
      told.type === decided.type &&
      told.stream === decided.stream &&
      told.cause === decided.cause &&
      told.call === decided.call &&
      sameJson(outline(told), outline(decided)),
  };
};
