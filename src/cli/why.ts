/** `scribe why`: why a pod, container, image or call is as it is, from the journal, with its daemon up or down. */
import { openReader } from '../journal/open.ts';
import { helpSearchSoon } from '../journal/search-windows.ts';
import { command, failure, misuse, type Values } from './command.ts';
import { duration } from './format.ts';
import { createNames, type Names } from './history/names.ts';
import { type Io, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { type PastState, stateAt } from './past/state.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { THING_FORMS } from './things.ts';
import { MOMENT_FORMS, type Moment, parseMoment } from './time-argument.ts';
import type { Answer } from './why/answer.ts';
import { causeChain } from './why/chain.ts';
import { causesOf, explain } from './why/explain.ts';
import { find, mayBeGone, searchAhead, type Sources } from './why/find.ts';
import { lastChange, parseField } from './why/last-change.ts';
import { thingWords } from './why/people.ts';
import { createRecords, type RecordSearch } from './why/records.ts';
import { answerJson, showAnswer } from './why/show.ts';
import { isUntold, untoldWords } from './why/unknown.ts';
import { subjectOf } from '../domain/model/records.ts';

const options = {
  root: rootOption,
  config: configOption,
  at: { value: 'MOMENT', about: `As of this moment, instead of now. ${MOMENT_FORMS}` },
  'last-change': {
    value: 'FIELD',
    about:
      'The record that last changed a field: container/ID.FIELD, pod/ID.FIELD or image/ID.FIELD, where FIELD is as scribe diff names it, or exit, run, stop of a container.',
  },
  utc: { about: 'Times in UTC, instead of in the local zone.' },
  json: jsonOption,
} as const;

interface Question extends Sources {
  readonly path: string;
  readonly reader: ReturnType<typeof openReader>;
  readonly past: PastState;
  readonly nowNs: bigint;
}

const NS_PER_MS = 1_000_000n;

const headOf = (moment: string | undefined, headSeq: number): Moment =>
  moment === undefined ? { kind: 'record', seq: headSeq } : parseMoment(moment, '--at');

const ask = (path: string, reader: Question['reader'], at: string | undefined, moment: Moment): Question => {
  const past = stateAt(path, reader, moment);
  const names: Names = createNames(reader);
  const clockNs = BigInt(Date.now()) * NS_PER_MS;
  // A clock that was set back must not make ages negative.
  const nowNs = at === undefined && clockNs > past.atNs ? clockNs : past.atNs;
  return { path, reader, past, nowNs, names, state: past.state, records: createRecords(reader, past.seq) };
};

const explained = async (question: Question, thing: string, ahead: RecordSearch | null): Promise<Answer> => {
  const found = await find(question, thing, ahead);
  const answer = explain(question, isUntold(question, found) ? { kind: 'nothing' } : found, thing);
  if (answer !== null) return answer;
  const { reader, past } = question;
  const later = createRecords(reader, reader.headSeq(), past.seq + 1);
  throw failure(await untoldWords({ ...question, records: later }, past, thing));
};

const valueText = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));

const explainedField = async (question: Question, text: string): Promise<Answer> => {
  const { thing, field } = parseField(text);
  const found = await find(question, thing);
  if (found.kind !== 'thing') throw failure(`The journal knows of no ${thing.replace(':', ' ')}.`);
  const change = lastChange(question.path, question.reader, found.stream, field, question.past.seq);
  const event = question.records.at(change.seq);
  if (event === null) throw failure(`Record ${change.seq} changed it, and cannot be read.`);
  const ago = duration(question.nowNs > event.atNs ? question.nowNs - event.atNs : 0n);
  const name = thingWords(question.names, found.stream);
  return {
    about: { ...subjectOf(found.stream), name },
    headline: `Record ${change.seq} (${event.type}) last changed ${field} of ${name}, ${ago} ago.`,
    facts: [
      { name: 'before', text: valueText(change.before) },
      { name: 'after', text: valueText(change.after) },
    ],
    chain: causeChain(question.records, causesOf(question, event)),
  };
};

const show = async (
  values: Values<typeof options>,
  { past, nowNs }: Question,
  answer: Answer,
  io: Io,
): Promise<void> => {
  if (values.json === true) await write(io.stdout, answerJson(answer, past.seq, nowNs));
  else await showAnswer(answer, timesIn(values), io);
  for (const note of past.notes) await write(io.stderr, `scribe: ${note}\n`);
};

export const why = command({
  name: 'why',
  summary: 'why a pod, container, image or call is as it is',
  description: [
    `Says in one sentence why a thing is as it is, then what is known of it, then the chain of causes behind it, a record each: who asked, what NRI plugins changed, which step took how long, what failed, what is still owed. ${THING_FORMS} A number is a record: a call that is under way or has ended, or anything else that was recorded.`,
    'Reads the journal itself, with the daemon up or down, and changes nothing. Knows pods and containers after they are gone, and calls for what never came to be, as long as their records are not pruned.',
  ],
  operands: { name: 'THING', count: 1, countMin: 0 },
  options,
  examples: [
    ['scribe why default/web/nginx', 'Why this container is dead, or has not started.'],
    ['scribe why default/web --at 03:12', 'Why the pod was as it was then.'],
    ['scribe why 48211', 'Which step of a call took long, or what led to a record.'],
    ['scribe why --last-change container/8d1b7e.exit', 'Which record gave a container its exit code.'],
  ],
  readsIn: readsInRoot,
  isPaged: () => true,
  run: async (values, [thing], io) => {
    const field = values['last-change'];
    if ((thing === undefined || thing === '') === (field === undefined)) {
      throw misuse(
        field === undefined
          ? 'THING is missing: name a pod, container, image or call.\nscribe why --help describes the command.'
          : 'THING and --last-change: give one of them.',
      );
    }
    const path = await readableJournal(await rootOf(values));
    const reader = openReader(path, thing !== undefined && mayBeGone(thing) ? helpSearchSoon(path) : null);
    let ahead: RecordSearch | null = null;
    try {
      const moment = headOf(values.at, reader.headSeq());
      // Meanwhile the state is folded, which tells whether it is there.
      if (thing !== undefined && moment.kind === 'record')
        ahead = searchAhead({ reader, records: createRecords(reader, moment.seq) }, thing);
      const question = ask(path, reader, values.at, moment);
      const answer = await (field === undefined
        ? explained(question, thing ?? '', ahead)
        : explainedField(question, field));
      await show(values, question, answer, io);
      void io.recordRead?.({ fromSeq: 1, toSeq: question.past.seq, shown: answer.chain.length });
      return 0;
    } finally {
      ahead?.end();
      reader.close();
    }
  },
});
