/**
 * The record that last changed a field of a pod, container or image: folds stretch by stretch between snapshots, from
 * the newest back, and looks at the object after each record.
 */
import { NODE_STREAM, sandboxStream, type Subject, subjectOf } from '../../domain/model/records.ts';
import { sameJson } from '../../domain/values/json.ts';
import { namesOnPath } from '../../domain/values/json-paths.ts';
import { nodeFold } from '../../engine/node-fold.ts';
import { foldRecords, foldState } from '../../journal/fold.ts';
import { isAsWritten } from '../../journal/raw-record.ts';
import type { JournalReader } from '../../journal/reader.ts';
import { failure, misuse } from '../command.ts';
import { readableEvent } from '../history/entries.ts';
import { recordOf } from '../history/names.ts';
import { allRecords } from '../past/pages.ts';
import { fieldAt, objectIn } from '../past/things.ts';

type Source = Pick<JournalReader, 'keptSnapshots' | 'placesOfStream' | 'firstSeqOfStream' | 'page'>;

export interface FieldOf {
  readonly thing: string;
  readonly field: string;
}

export interface LastChange {
  readonly seq: number;
  /** In full: with "phase." where it is a part of that. */
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

const FIELD = /^((?:pod|sandbox|container|image)[/:][^.]+(?:\.[^.]+)*?)\.([A-Za-z].*)$/;
const WHOLE = /^(pod|sandbox|container|image)[/:]([0-9a-f:]{4,71})\.([A-Za-z].*)$/;

/** "container/ID.FIELD". */
export const parseField = (text: string): FieldOf => {
  const [, kind, id, field] = WHOLE.exec(text.replace('image/sha256:', 'image/')) ?? [];
  if (kind !== undefined && id !== undefined && field !== undefined)
    return { thing: `${kind === 'sandbox' ? 'pod' : kind}:${id}`, field };
  const [, named, of] = FIELD.exec(text) ?? [];
  if (named === undefined || of === undefined)
    throw misuse(`--last-change ${text}: say which field of what, as container/ID.FIELD; scribe diff names fields.`);
  return { thing: named.replace(/^sandbox[/:]/, 'pod:').replace(/^(pod|container|image)\//, '$1:'), field: of };
};

/** What a phase has may be named without it: exit, run, stop. */
const valueOf = (object: unknown, path: readonly string[]): unknown => {
  const direct = fieldAt(object, path);
  return direct === undefined ? fieldAt(object, ['phase', ...path]) : direct;
};

const changeWithin = (
  path: string,
  subject: Subject,
  names: readonly string[],
  fromSeq: number,
  toSeq: number,
): Omit<LastChange, 'field'> | null => {
  const { state } = foldState(path, nodeFold, fromSeq, 'checked');
  let object = objectIn(state, subject);
  let value = valueOf(object, names);
  let last: Omit<LastChange, 'field'> | null = null;
  foldRecords(path, { fromSeq: fromSeq + 1, toSeq, reading: 'checked' }, (record) => {
    // What is not as it was written changed nothing that can be told.
    if (!isAsWritten(record)) return;
    nodeFold.evolve(state, record);
    const now = objectIn(state, subject);
    // Objects are replaced, never changed.
    if (now === object) return;
    object = now;
    const is = valueOf(now, names);
    // To go is no change of what it had; an image that comes again has everything anew, as after a snapshot without it.
    if (now !== undefined && !sameJson(is, value)) last = { seq: record.seq, before: value, after: is };
    value = is;
  });
  return last;
};

/** Records that may change the object: its own, its pod's, and starts of the daemon; all else need not be folded. */
const touchingSeqs = (reader: Source, stream: string, throughSeq: number): number[] => {
  const firstSeq = reader.firstSeqOfStream(stream);
  const record = firstSeq === 0 ? undefined : recordOf(reader, firstSeq);
  const made = record === undefined ? null : readableEvent(record);
  const pod = made?.type === 'container.requested' ? [sandboxStream(made.body.podSandboxId)] : [];
  const of = (names: readonly string[]): number[] =>
    names.flatMap((name) => reader.placesOfStream(name).map(({ seq }) => seq));
  const starts = allRecords(reader, { streams: [NODE_STREAM], types: ['daemon.started'] }, throughSeq);
  return [...of([stream, ...pod]), ...starts.map(({ seq }) => seq)].filter((seq) => seq <= throughSeq);
};

/** Throws where the field never had a value. */
export const lastChange = (
  path: string,
  reader: Source,
  stream: string,
  field: string,
  throughSeq: number,
): LastChange => {
  const subject = subjectOf(stream);
  const names = namesOnPath(field);
  if (names === null)
    throw misuse(
      `--last-change: "${field}" names no field. A name with dots stands in brackets and quotes, as scribe diff has it: config.labels["app.kubernetes.io/name"].`,
    );
  const bornSeq = reader.firstSeqOfStream(stream) || 1;
  const touching = touchingSeqs(reader, stream, throughSeq);
  const starts = [
    0,
    ...reader
      .keptSnapshots(nodeFold.evolverVersion)
      .map(({ seq }) => seq)
      .filter((seq) => seq < throughSeq),
  ].toReversed();
  let toSeq = throughSeq;
  for (const fromSeq of starts) {
    const [from, to] = [fromSeq, toSeq];
    const found = touching.some((seq) => seq > from && seq <= to) ? changeWithin(path, subject, names, from, to) : null;
    if (found !== null) return { ...found, field };
    if (fromSeq < bornSeq) break;
    toSeq = fromSeq;
  }
  throw failure(`Nothing has changed "${field}" of ${stream}: it never had one. scribe diff names fields.`);
};
