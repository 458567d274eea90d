/** What kinds of records the page tells apart, and how they rank. Shared with the server that sends them. Pure. */

/** In the order of their numbers on the wire: new ones come last. */
export const KINDS = [
  'step',
  'call',
  'failed call',
  'call under way',
  'exit',
  'failed exit',
  'trouble',
  'begin',
  'end',
  'removal',
  'event',
] as const;

export type Kind = (typeof KINDS)[number];

export const kindNumber = (kind: Kind): number => KINDS.indexOf(kind);

export const kindOf = (number: number): Kind => KINDS[number] ?? 'step';

/** Which colour it has, and which part of the histogram counts it. */
export const TONES = ['wrong', 'call', 'event', 'step'] as const;
export type Tone = (typeof TONES)[number];

export const toneOf = (kind: Kind): Tone => {
  switch (kind) {
    case 'failed call':
    case 'failed exit':
    case 'trouble':
      return 'wrong';
    case 'call':
    case 'call under way':
      return 'call';
    case 'exit':
    case 'begin':
    case 'end':
    case 'removal':
    case 'event':
      return 'event';
    case 'step':
      return 'step';
  }
};

/** A kind's tone by its number, for loops over many records. */
export const TONE_NUMBERS: readonly number[] = KINDS.map((kind) => TONES.indexOf(toneOf(kind)));

/** What is worth a row of its own in a list, as in `scribe history`; the rest are parts of these. */
export const isTold = (kind: Kind): boolean => {
  switch (kind) {
    case 'step':
    case 'begin':
    case 'end':
    case 'removal':
      return false;
    case 'call':
    case 'failed call':
    case 'call under way':
    case 'exit':
    case 'failed exit':
    case 'trouble':
    case 'event':
      return true;
  }
};
