/**
 * What the daemon met that was bad and went on without (C20), for `scribe doctor`: a sentence each, kept until the
 * daemon ends. Bounded, so that a fault that repeats itself can't fill the memory.
 */

/** The oldest make room. */
const FINDINGS_MAX = 200;
const SENTENCE_CHARACTERS_MAX = 2_000;

export interface Findings {
  /** One that is there already is not added again; of those about the same the latest stands. */
  readonly add: (sentence: string, about?: string) => void;
  readonly has: (about: string) => boolean;
  /** It is so no more: nobody is told of it from now on. */
  readonly settle: (about: string) => void;
  readonly list: () => readonly string[];
}

/**
 * Told, in a sentence, what nobody may miss: it goes to the log and to `scribe doctor`. What is said again and again, in ever
 * other words, says what it is about: the log has it once, and `scribe doctor` as it was said last.
 */
export type Report = (sentence: string, about?: string) => void;

export const reportTo =
  (findings: Pick<Findings, 'add' | 'has'>, log: { readonly warn: (message: string) => void }): Report =>
  (sentence, about) => {
    if (about === undefined || !findings.has(about)) log.warn(sentence);
    findings.add(sentence, about);
  };

export function createFindings(): Findings {
  const sentences = new Map<string, string>();
  return {
    add(sentence, about) {
      const bounded = sentence.slice(0, SENTENCE_CHARACTERS_MAX);
      sentences.set(about ?? bounded, bounded);
      const [oldest] = sentences.keys();
      if (sentences.size > FINDINGS_MAX && oldest !== undefined) sentences.delete(oldest);
    },
    has: (about) => sentences.has(about),
    settle: (about) => void sentences.delete(about),
    list: () => [...sentences.values()],
  };
}
