/**
 * Going through a journal decision by decision: a line in, what it asks for out. Works on a terminal and over a pipe alike.
 * Keeps the last states, so that one can go back.
 */
import { createInterface } from 'node:readline';
import { copyState, type NodeState } from '../../domain/model/state.ts';
import type { Replayed } from '../../engine/replay.ts';
import { counted, grouped, jsonLine } from '../format.ts';
import { type Io, write } from '../io.ts';
import { changesBetween } from '../past/changes.ts';
import type { Break } from './break-on.ts';
import { causeLines, changeLines, decisionLines, textOf } from './decision.ts';
import { fieldNamed, fieldOf, thingNamed } from './things.ts';
import type { Source } from './source.ts';

/** Decisions that one can go back from the newest. */
const KEPT_MAX = 1_000;

interface Position {
  readonly replayed: Replayed;
  /** Before and after it. */
  readonly before: Readonly<NodeState> | null;
  readonly state: Readonly<NodeState>;
  /** Whether `continue` ends here. */
  readonly stops: boolean;
}

export interface Stepper {
  /** The next decision, or the one that was gone back from; null at the end. */
  readonly next: () => Position | null;
  /** null: nothing is kept of earlier ones. */
  readonly back: () => Position | null;
  readonly here: () => Position | null;
}

export const createStepper = (decisions: Iterator<Replayed, unknown>, stop: Break): Stepper => {
  const kept: Position[] = [];
  let at = -1;

  const take = (): Position | null => {
    const taken = decisions.next();
    if (taken.done === true) return null;
    const replayed = taken.value;
    const before = kept.at(-1)?.state ?? null;
    // Asked here alone: it has to see each of them once, and in order, wherever one goes back to.
    const position = { replayed, before, state: copyState(replayed.state), stops: stop(replayed) };
    if (kept.push(position) > KEPT_MAX) kept.shift();
    at = kept.length - 1;
    return position;
  };

  return {
    next() {
      if (at >= kept.length - 1) return take();
      at += 1;
      return kept[at] ?? null;
    },
    back() {
      if (at <= 0) return null;
      at -= 1;
      return kept[at] ?? null;
    },
    here: () => kept[at] ?? null,
  };
};

const HELP = [
  'next [N]        the next decision (or the Nth from here)',
  'back [N]        the decision before',
  'continue        on to the next decision that differs, or that --break-on names',
  'go RECORD       on to the decision that this record is of',
  'state [THING]   a pod, container or image as it is after this decision: web, container/4f2a, container/4f2a.phase',
  'diff            what this decision changed, and in what it differs from what was recorded',
  'why             what led to this decision, record by record',
  'records         the records of this decision, whole, as JSON',
  'quit            the end; each word can be shortened to its first letter',
];

const COMMANDS = ['next', 'back', 'continue', 'go', 'state', 'diff', 'why', 'records', 'help', 'quit'] as const;
type CommandName = (typeof COMMANDS)[number];

const commandOf = (word: string): CommandName | null =>
  COMMANDS.find((name) => name === word || name[0] === word) ?? null;

/** One, unless it is said; null: that is no count. */
const countOf = (text = '1'): number | null => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : null);

const JOURNAL_ENDS = 'The journal ends here.';

/** Goes to the first decision that `stop` names, and back to none. */
const run = (stepper: Stepper, stop: (position: Position) => boolean): readonly string[] => {
  for (let position = stepper.next(); position !== null; position = stepper.next())
    if (stop(position)) return decisionLines(position.replayed);
  return [JOURNAL_ENDS];
};

/** Where there are fewer, it goes to the last of them, and shows where that is. */
const repeated = (
  step: () => Position | null,
  here: Stepper['here'],
  count: number,
  end: string,
): readonly string[] => {
  let position: Position | null = null;
  for (let left = count; left > 0; left -= 1) {
    position = step();
    const reached = here();
    if (position === null)
      return left === count || reached === null ? [end] : [end, ...decisionLines(reached.replayed)];
  }
  return position === null ? [end] : decisionLines(position.replayed);
};

const stateLines = (state: Readonly<NodeState>, text: string): readonly string[] => {
  if (text === '') {
    const { sandboxes, containers, images, effects, calls } = state;
    return [
      `${counted(sandboxes.size, 'pod')}, ${counted(containers.size, 'container')}, ${counted(images.size, 'image')}; under way: ${counted(effects.size, 'effect')}, ${counted(calls.size, 'call')}`,
    ];
  }
  const field = fieldNamed(text);
  const value = field === null ? thingNamed(state, text)?.value : fieldOf(state, field);
  return value === undefined ? [`There is no ${text} now.`] : JSON.stringify(value, null, 2).split('\n');
};

const recordsLines = ({ input, recorded }: Replayed): string[] =>
  [input, ...recorded].map((record) =>
    jsonLine({ ...record, atNs: String(record.atNs), monoNs: String(record.monoNs) }).trimEnd(),
  );

/** What a line asks for; null: the end. */
export const answerTo = (line: string, source: Source, stepper: Stepper): readonly string[] | null => {
  const [word = '', ...rest] = line.trim().split(/\s+/);
  const command = word === '' ? 'next' : commandOf(word);
  const here = stepper.here();
  switch (command) {
    case 'quit':
      return null;
    case null:
      return [`There is no "${word}". Try help.`];
    case 'help':
      return HELP;
    case 'next':
    case 'back': {
      const count = countOf(rest[0]);
      if (count === null) return [`${command} takes a number of decisions, from 1 on.`];
      const end = command === 'next' ? JOURNAL_ENDS : 'Nothing is kept of what was before.';
      return repeated(stepper[command], stepper.here, count, end);
    }
    case 'continue':
      return run(stepper, ({ stops }) => stops);
    case 'go': {
      const seq = Number(rest[0]);
      if (!Number.isSafeInteger(seq)) return ['go takes the number of a record.'];
      if (here !== null && seq < here.replayed.input.seq) return [`Record ${grouped(seq)} is behind: back goes there.`];
      return run(stepper, ({ replayed: { input, recorded } }) => (recorded.at(-1) ?? input).seq >= seq);
    }
    case 'state':
    case 'diff':
    case 'why':
    case 'records':
      if (here === null) return ['No decision was made yet. Try next.'];
      if (command === 'state') return stateLines(here.state, rest.join(' '));
      if (command === 'why') return causeLines(source, here.replayed.input);
      if (command === 'records') return recordsLines(here.replayed);
      return changeLines(here.before === null ? null : changesBetween(here.before, here.state), here.replayed);
  }
};

/** Answers line after line until there are none, or quit. `first` is shown before anything is asked. */
export const step = async ({ stdin, stdout }: Io, source: Source, stepper: Stepper): Promise<void> => {
  const prompt = async (): Promise<void> => (stdout.isTTY === true ? write(stdout, '(replay) ') : undefined);
  const lines = createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY });
  try {
    await prompt();
    for await (const line of lines) {
      const answer = answerTo(line, source, stepper);
      if (answer === null) return;
      await write(stdout, textOf(answer));
      await prompt();
    }
  } finally {
    lines.close();
  }
};
