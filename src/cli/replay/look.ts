/** Looking at single decisions of a journal: at the first that is asked for, by hand, or in the debugger. */
import type { Sequenced } from '../../domain/model/records.ts';
import type { Replayed } from '../../engine/replay.ts';
import { failure, type ExitStatus } from '../command.ts';
import { grouped, jsonLine } from '../format.ts';
import { type Io, write } from '../io.ts';
import { type Break, type BreakFrom, differs } from './break-on.ts';
import { reportLines } from './crash.ts';
import { decisionLines, textOf, unrecordedLines } from './decision.ts';
import { firstAt, inspectAt } from './inspect.ts';
import { decisionsOf } from './run.ts';
import type { Source, Unreadable } from './source.ts';
import { answerTo, createStepper, step } from './step.ts';

export interface Looking {
  readonly toSeq: number;
  /** What --break-on names; null: nothing. */
  readonly stop: BreakFrom | null;
  readonly step: boolean;
  readonly inspect: boolean;
  readonly json: boolean;
}

export const look = async (source: Source, { toSeq, stop: asked, ...how }: Looking, io: Io): Promise<ExitStatus> => {
  const { crash, name } = source;
  const stop = asked?.(source.start) ?? crashed(source) ?? differs;
  if (crash !== undefined && !how.json) await write(io.stdout, textOf(reportLines(crash)));
  let lastRead = toSeq;
  const unreadable: Unreadable = (seq, why, endsAt = toSeq) => {
    lastRead = Math.min(lastRead, endsAt);
    io.stderr.write(`scribe: record ${grouped(seq)} cannot be read: ${why}\n`);
  };
  if (how.step) {
    const gone = { isBad: false };
    const decisions = decisionsOf(source, { toSeq, unreadable });
    const stepper = createStepper(
      noting(decisions, (replayed) => {
        if (isOtherThanRecorded(source, replayed)) gone.isBad = true;
      }),
      stop,
    );
    if (stop !== differs) await write(io.stdout, textOf(answerTo('continue', source, stepper) ?? []));
    await step(io, source, stepper);
    return gone.isBad ? 1 : 0;
  }
  if (asked === null && crash !== undefined && crash.input === null) return 0;
  const found = firstAt(source, toSeq, stop, unreadable);
  if (found === null) throw failure(`${name}: no decision is like that up to record ${grouped(lastRead)}.`);
  if (how.inspect) await inspectAt(source, found.input.seq, io);
  else if (how.json) await write(io.stdout, jsonOf(found));
  else await write(io.stdout, textOf(isUnrecorded(source, found) ? unrecordedLines(found) : decisionLines(found)));
  return isOtherThanRecorded(source, found) ? 1 : 0;
};

/** The daemon ended before the journal had anything of this decision. */
const isUnrecorded = ({ crash }: Source, { input }: Replayed): boolean =>
  crash !== undefined && !crash.isDecided && crash.input?.seq === input.seq;

/** Of what was not recorded, no more can be asked than that it can be decided. */
const isOtherThanRecorded = (source: Source, replayed: Replayed): boolean =>
  isUnrecorded(source, replayed) ? replayed.decided === null : differs(replayed);

/** The same decisions, each told of as it is taken. */
function* noting(decisions: Iterable<Replayed>, note: (replayed: Replayed) => void): Generator<Replayed> {
  for (const replayed of decisions) {
    note(replayed);
    yield replayed;
  }
}

/** The decision that a report is about. */
const crashed = ({ crash }: Source): Break | null => {
  const seq = crash?.input?.seq;
  return seq === undefined ? null : ({ input }) => input.seq === seq;
};

const jsonOf = ({ input, recorded, decided, differences }: Replayed): string =>
  jsonLine({
    input: withText(input),
    recorded: recorded.map(withText),
    decided: decided?.map(withText) ?? null,
    differences,
  });

const withText = (record: Sequenced): unknown => ({
  ...record,
  atNs: String(record.atNs),
  monoNs: String(record.monoNs),
});
