/** What is said where nothing explains a thing as of a moment: that it came later, that it is pruned, or how to name one. */
import { subjectOf } from '../../domain/model/records.ts';
import { counted } from '../format.ts';
import { type NamesSource, nearNamed } from '../near-names.ts';
import { objectIn } from '../past/things.ts';
import { isIdPrefix, parseThingName, THING_FORMS } from '../things.ts';
import { find, type Found, type Sources } from './find.ts';

export interface Asked extends Sources {
  /** That of `Sources`, and when each record of a stream was written. */
  readonly reader: Sources['reader'] &
    NamesSource & {
      readonly firstSeqOfStream: (stream: string) => number;
    };
}

/** By an id things are found whenever they were there: nothing of this one can be read up to that moment. */
export const isUntold = ({ records, state }: Asked, found: Found): boolean => {
  if (found.kind !== 'thing') return found.kind === 'nothing';
  return objectIn(state, subjectOf(found.stream)) === undefined && records.ofStream(found.stream).length === 0;
};

const DIGITS = /^[0-9a-f]+$/;

export interface UpTo {
  readonly seq: number;
  readonly prunedRecords: number;
}

const amongPruned = ({ prunedRecords }: UpTo): string =>
  prunedRecords === 0
    ? ''
    : `, of which ${counted(prunedRecords, 'record')} ${prunedRecords === 1 ? 'is' : 'are'} pruned: it may have been among them`;

/** @param toHead  what is asked, with all records that there are */
export const untoldWords = async (toHead: Asked, past: UpTo, text: string): Promise<string> => {
  const found = await find(toHead, text);
  const isBegun = DIGITS.test(text) && !isIdPrefix(text);
  const nothing = `The journal knows nothing of "${text}" up to record ${past.seq}`;
  switch (found.kind) {
    case 'call':
      return `${nothing}: record ${found.received.seq} asked for it later. --at ${found.received.seq} has it.`;
    case 'thing': {
      const firstSeq = toHead.reader.firstSeqOfStream(found.stream);
      return firstSeq === 0
        ? `${nothing} but that it was there: its records are pruned.`
        : `${nothing}: the first record of it is ${firstSeq}. --at ${firstSeq} or later has it.`;
    }
    case 'record':
    case 'nothing': {
      const near = nearNamed(toHead.reader, parseThingName(text), toHead.records.toSeq);
      return [
        `${nothing}${amongPruned(past)}.${near}`,
        ...(isBegun ? ['Of an id at least 4 digits are needed.'] : []),
        THING_FORMS,
        'scribe history --text looks for a word in all that was recorded.',
      ].join(' ');
    }
  }
};
