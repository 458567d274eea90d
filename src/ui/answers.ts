/** What the server answers to the page's questions, as JSON. Types only: nothing is checked twice. */

export type Style = 'plain' | 'bad' | 'doubtful' | 'faint' | 'head';

/** A row of a history: the same words as `scribe history` has. */
export interface EntryRow {
  readonly seq: number;
  readonly time: string;
  readonly what: string;
  readonly object: string;
  readonly caller: string;
  readonly took: string;
  readonly outcome: string;
  readonly style: Style;
}

export interface RecordAnswer {
  readonly seq: number;
  /** RFC 3339, in UTC with nanoseconds. */
  readonly time: string;
  readonly type: string;
  readonly v: number;
  readonly stream: string;
  readonly object: string;
  readonly cause: number | null;
  readonly call: number | null;
  /** Hex. */
  readonly bodyHash: string;
  readonly hash: string;
  /** As far as the level goes. */
  readonly body: unknown;
  /** Of a call, or of something that a history tells by itself. */
  readonly row: EntryRow | null;
}

export interface ChainLink {
  readonly seq: number;
  readonly time: string;
  readonly text: string;
  /** How long it took, in words; '' where that is not known. */
  readonly took: string;
  readonly style: Style;
}

/** What `scribe why` says. */
export interface WhyAnswer {
  readonly headline: string;
  readonly facts: readonly { readonly name: string; readonly text: string }[];
  readonly chain: readonly ChainLink[];
}

export interface StateTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly { readonly cells: readonly string[]; readonly style: Style }[];
}

/** What `scribe at` says. */
export interface AtAnswer {
  readonly seq: number;
  readonly time: string;
  readonly notes: readonly string[];
  readonly tables: readonly StateTable[];
}

/** Records that a filter chose; each line of the answer is one of these, and adds to those before. */
export interface Matches {
  readonly seqs: readonly number[];
  /** How far was looked. */
  readonly throughSeq: number;
  /** All that was there has been looked through. */
  readonly isWhole: boolean;
  /** Why there may be none, in a sentence; '' for nothing that is known. */
  readonly note: string;
}

export interface AboutAnswer {
  /** The path of the journal. */
  readonly journal: string;
  /** At which level records are shown. */
  readonly level: string;
  /** In which times are shown, by its IANA name: that of the command, wherever the browser is. */
  readonly timeZone: string;
}

/** What went wrong, in a sentence; any answer may be this. */
export interface ErrorAnswer {
  readonly error: string;
}
