/** A finding in words: what was broken, and the records that matter for it, one a line. */
import { type Sequenced, subjectOf } from '../../src/domain/model/records.ts';
import type { Shrunk } from './shrink.ts';

const NS_PER_S = 1_000_000_000;
const LINES_MAX = 60;
const ID = /0{20,}\d+/g;
const CALL = /of record (\d+)/;

/** Simulated ids are numbers with leading zeros. */
const short = (text: string): string => text.replace(/0{20,}(?=\d)/g, '');

function wordsOf(record: Sequenced): string {
  switch (record.type) {
    case 'call.received': {
      const { method, ...rest } = record.body.request;
      const { containerId, podSandboxId } = rest as { containerId?: string; podSandboxId?: string };
      return `a client calls ${method}${containerId === undefined ? '' : ` of container ${containerId}`}${podSandboxId === undefined ? '' : ` of pod ${podSandboxId}`}`;
    }
    case 'call.completed':
      return `${record.body.method} is answered with ${record.body.failure === undefined ? 'OK' : `${record.body.failure.reason}: ${record.body.failure.message}`}`;
    case 'call.detached':
      return `the client of record ${record.body.received} has gone`;
    case 'effects.requested':
      return `to do: ${record.body.effects.map((intent) => (intent.kind === 'WaitUntil' ? `wait (${intent.purpose})` : intent.kind)).join(', ')}`;
    case 'effect.ended':
      return record.body.failure === undefined
        ? `${record.body.kind} is done`
        : `${record.body.kind} failed: ${record.body.failure.message}`;
    case 'daemon.started':
      return record.body.rebooted ? 'the node was rebooted, and the daemon starts' : 'the daemon starts';
    case 'container.exited':
      return `container.exited: ${record.body.reason}, code ${record.body.exitStatus}`;
    case 'task.exited':
      return `its task has ended with ${record.body.exit.exitStatus}`;
    default:
      return record.type;
  }
}

/** What a record of a call is about: the call, its object, what the request names, what it waits for. */
function aboutOf(record: Sequenced): string[] {
  const { kind, id } = subjectOf(record.stream);
  return [...(kind === 'node' ? [] : [id]), ...(JSON.stringify(record.body).match(ID) ?? [])];
}

/** Objects that the finding names, or that the call is about that it names, and the pods of these. */
function subjectsOf(message: string, records: readonly Sequenced[]): ReadonlySet<string> {
  const named = new Set(message.match(ID) ?? []);
  const [, call] = CALL.exec(message) ?? [];
  for (const record of records) if (record.call === Number(call)) for (const id of aboutOf(record)) named.add(id);
  for (const record of records) {
    if (record.type !== 'container.requested') continue;
    const { id } = subjectOf(record.stream);
    if (named.has(id)) named.add(record.body.podSandboxId);
  }
  return named;
}

function isAbout(record: Sequenced, subjects: ReadonlySet<string>): boolean {
  if (record.type === 'daemon.started' || record.type === 'daemon.stopped' || subjects.size === 0) return true;
  if (subjects.has(subjectOf(record.stream).id)) return true;
  if (record.type !== 'call.received' && record.type !== 'call.completed') return false;
  const text = JSON.stringify(record.body);
  return [...subjects].some((id) => text.includes(id));
}

/** Calls are told of with their answers. */
function thoseThatMatter(records: readonly Sequenced[], subjects: ReadonlySet<string>): Sequenced[] {
  const about = new Set(records.filter((record) => isAbout(record, subjects)));
  const calls = new Set([...about].flatMap(({ type, seq }) => (type === 'call.received' ? [seq] : [])));
  const isOfCall = ({ type, call }: Sequenced): boolean => type.startsWith('call.') && call !== null && calls.has(call);
  return records.filter((record) => about.has(record) || isOfCall(record));
}

/** How to run it again stands in the first lines. */
export function report({ options, finding, runs }: Shrunk): string {
  const { seed, target, size, uneventful = [] } = options;
  const { records, message } = finding;
  const subjects = subjectsOf(message, records);
  const shown = thoseThatMatter(records, subjects);
  const beganNs = records[0]?.atNs ?? 0n;
  const lines = shown.map((record) => {
    const at = (Number(record.atNs - beganNs) / NS_PER_S).toFixed(4).padStart(9);
    const { kind, id } = subjectOf(record.stream);
    const about =
      kind === 'call' ? `call ${record.call ?? ''}` : kind === 'node' ? 'node' : `${kind} ${short(id).slice(0, 16)}`;
    return `${at} s  ${String(record.seq).padStart(4)}  ${about.padEnd(24)} ${short(wordsOf(record))}`;
  });
  const left = lines.length - LINES_MAX;
  return [
    short(message),
    `seed ${seed}, dies at "${target}", ${size?.clients ?? 3} clients, ${uneventful.length} stretches of choices put back; found in ${runs} histories`,
    `${records.length} records, of which ${shown.length} matter:`,
    ...(left > 0 ? [`  ... ${left} before`] : []),
    ...lines.slice(-LINES_MAX),
  ].join('\n');
}
