/**
 * What SQLite is asked for so that a history need not read everything: which records a filter, or a choice of objects, may
 * let through. May mark too much, never too little: whoever asks looks at each entry as usual.
 */
import { callMethods } from '../../domain/call/catalogue.ts';
import type { RecordType } from '../../domain/model/records.ts';
import type { BodyTest, BodyTests, MarkRule } from '../../journal/marks.ts';
import { COMPLETED, RECEIVED, TOLD } from './entries.ts';
import { type Filter, jsonText } from './filter.ts';
import { askedRules, imageRules } from './makings.ts';
import type { Selection } from './selection.ts';

const told = [...TOLD, 'task.exited'];
const EXECS = callMethods.filter((method) => method.startsWith('Exec'));

/** As method or as rpc. Beginning with a letter, which is rarer than a quotation mark, SQLite finds it sooner. */
const named = (names: readonly string[]): readonly BodyTest[] =>
  names.map((name) => ({ kind: 'holds', text: `${jsonText(name)}"` }));

/** What the request of a call that passes must hold; null: nothing that can be told from it. */
const requestTests = ({
  methods,
  callerUid,
  executable,
  execOnly,
}: Pick<Filter, 'methods' | 'callerUid' | 'executable' | 'execOnly'>): BodyTests | null => {
  const tests: (readonly BodyTest[])[] = [
    // What costs least comes first.
    ...(callerUid === null ? [] : [[{ kind: 'holds' as const, text: `uid":${callerUid}`, isExact: true }]]),
    ...(executable === null ? [] : [[{ kind: 'holds' as const, text: jsonText(executable), isExact: true }]]),
    ...(methods.length === 0 ? [] : [named(methods)]),
    ...(execOnly ? [named(EXECS)] : []),
  ];
  return tests.length === 0 ? null : tests;
};

const FAILED: readonly BodyTest[] = [
  { kind: 'isNotZero', path: '$.code' },
  { kind: 'isNotZero', path: '$.response.exitCode' },
];

/** SQLite knows the cases of ASCII alone: of other texts it says only which bodies may hold them. */
const holdsText = (text: string): BodyTest =>
  /^[\x20-\x7e]*$/.test(text.toLowerCase()) ? { kind: 'holds', text } : { kind: 'isNotAscii' };

/** Each word of a text, as it was typed or as JSON has it: what stands between them may be more than a space. */
const holdsWords = (text: string): BodyTests =>
  text
    .split(' ')
    .filter((word) => word !== '')
    .map((word) => [...new Set([word, jsonText(word)])].map(holdsText));

/** Those that tell of a plugin's part. */
const OF_PLUGINS: readonly RecordType[] = [
  'effect.ended',
  'container.adjusted',
  'container.stopping',
  'nri.plugin.closed',
];

const pluginRules = (plugin: string): readonly MarkRule[] => [
  { types: [RECEIVED, ...OF_PLUGINS], allOf: [[{ kind: 'holds', text: plugin, isExact: true }]] },
  { types: ['nri.plugin.registered'], allOf: [] },
];

const codeRule = (code: number): MarkRule => {
  // What costs little first; a body without a code is OK.
  const holds: BodyTests = code === 0 ? [] : [[{ kind: 'holds', text: `code":${code}`, isExact: true }]];
  return { types: [COMPLETED], allOf: [...holds, [{ kind: 'is', path: '$.code', number: code }]] };
};

const FAILED_RULES: readonly MarkRule[] = [
  { types: [COMPLETED], allOf: [FAILED] },
  { types: told.filter((type) => type !== 'container.exited'), allOf: [] },
  { types: ['container.exited'], allOf: [[{ kind: 'isNotZero', path: '$.exitStatus' }]] },
];

/** What marks all that a filter may let through; null: nothing in SQL tells what passes. */
export const filterRules = (
  { failedOnly, code, text, plugin, ...filter }: Filter,
  withEvents: boolean,
): readonly MarkRule[] | null => {
  if (plugin !== null) return pluginRules(plugin);
  const request = requestTests(filter);
  if (request !== null) {
    // Of a call whose beginning is pruned the end tells the method, and nothing of who called.
    const isOfCaller = filter.callerUid !== null || filter.executable !== null;
    const methods = isOfCaller ? [] : [...filter.methods, ...(filter.execOnly ? EXECS : [])];
    const ends: MarkRule[] = methods.length === 0 ? [] : [{ types: [COMPLETED], allOf: [named(methods)] }];
    return [{ types: [RECEIVED], allOf: request }, ...ends];
  }
  if (code !== null) return [codeRule(code)];
  if (failedOnly) return FAILED_RULES;
  if (text === null) return null;
  // Beneath a call any record may hold it.
  return [{ types: withEvents ? null : [RECEIVED, COMPLETED, ...told], allOf: holdsWords(text) }];
};

const idOf = (stream: string): string => stream.slice(stream.indexOf('/') + 1);

/**
 * Calls that nothing was recorded for on behalf of the chosen objects, but that name one: they were refused, or had nothing
 * to do. All others are found by the streams.
 */
export const thingsRules = ({ streams: chosen, wanted }: Selection): readonly MarkRule[] => {
  const streams = chosen() ?? [];
  const ids = streams.map(idOf);
  const named = (path: string, texts: readonly string[]): BodyTest => ({ kind: 'isOneOf', path, texts });
  const inRequest = ['containerId', 'podSandboxId', 'newId'].map((key) => named(`$.request.${key}`, ids));
  const inAnswer = ['$.response.id', '$.response.imageRefs[0]'].map((path) => named(path, ids));
  return [
    { types: [RECEIVED], allOf: [[...inRequest, named('$.request.about', streams)]] },
    { types: [COMPLETED], allOf: [inAnswer] },
    ...imageRules(wanted),
    ...askedRules(wanted),
  ];
};
