/**
 * The journal as the page may show it: at the default level nothing that a client chose freely is in a record's body when
 * anything behind this sees it, so no sentence, table or filter can tell of it. Bodies keep their shape, because words
 * are made from them; what is hidden reads "…". Pure, but for reading.
 */
import type { Failure } from '../../domain/model/errors.ts';
import type { NodeState } from '../../domain/model/state.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { isShownAtMetadata, isLookedInto, type Level, parsedBody } from '../export/level.ts';

const HIDDEN = '…';
const UNREADABLE = 'unreadable';

/** Objects whose keys clients and plugins chose. Those of CRI's messages that are called options are CRI's. */
const FREE_KEYED = /(annotations|labels|sysctls|unified|simple|compound|(?<!namespace|userns|selinux)options)$/i;

/** A name that scribe or CRI gave to a field; in what is hidden no other key is shown. */
const FIELD = /^[a-z][A-Za-z0-9]{0,40}$/;

/** 64-bit integers are text; under a name of a number they are numbers. */
const NUMBER = /^-?\d{1,20}$/;
const NUMBER_NAME = /(Ns|Seconds|Bytes|Quota|Period|Shares|Mems|Adj|Ticks|Id|Max|Min|Weight|Limit|Score)$/;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/**
 * @param under  the key of what it is in
 * @param open  every key on the way here is one that export looks into at this level
 */
const hide = (value: unknown, key: string, under: string, open: boolean): unknown => {
  if (Array.isArray(value)) return value.map((item) => hide(item, isObject(item) ? key : '', under, open));
  if (isObject(value)) {
    const isOpen = open && (key === '' || isLookedInto(key));
    if (!isOpen && FREE_KEYED.test(key)) return {};
    const shown = Object.entries(value).filter(([name]) => isOpen || FIELD.test(name));
    return Object.fromEntries(shown.map(([name, inner]) => [name, hide(inner, name, key, isOpen)]));
  }
  if (typeof value !== 'string') return value;
  if (open && isShownAtMetadata(key, under)) return value;
  return value === '' || (NUMBER.test(value) && NUMBER_NAME.test(key)) ? value : HIDDEN;
};

/** The record with nothing in it that the level hides. */
export const shownRecord = (level: Level, record: JournalRecord): JournalRecord => {
  if (level === 'request-response' || (level === 'request' && record.type === 'call.received')) return record;
  const body = parsedBody(record.body);
  // Nothing can be told of it, and it stays what cannot be read.
  return { ...record, body: body === null ? UNREADABLE : JSON.stringify(hide(body, '', '', true)) };
};

/** A reader that gives no more of any record than the level lets through. */
export const shownReader = (reader: JournalReader, level: Level): JournalReader => {
  if (level === 'request-response') return reader;
  const shown = (record: JournalRecord): JournalRecord => shownRecord(level, record);
  return {
    ...reader,
    page: (query, cursor, headSeq) => {
      const { records, next } = reader.page(query, cursor, headSeq);
      return { records: records.map(shown), next };
    },
    read: async function* (query) {
      for await (const record of reader.read(query)) yield shown(record);
    },
  };
};

type Owing = { readonly owedFailure: Failure | null };

const hideOwed = <T extends Owing>(things: Map<string, T>): Map<string, T> =>
  new Map(
    [...things].map(([id, thing]) => {
      const { owedFailure } = thing;
      return [id, owedFailure === null ? thing : { ...thing, owedFailure: { ...owedFailure, message: HIDDEN } }];
    }),
  );

/** A state whose failures say no more than their reasons. What else of it is shown are names, ids and states. */
export const shownState = (level: Level, state: NodeState): NodeState =>
  level === 'request-response'
    ? state
    : { ...state, sandboxes: hideOwed(state.sandboxes), containers: hideOwed(state.containers) };
