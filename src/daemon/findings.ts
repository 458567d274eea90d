/**
 * What the daemon met that was bad and went on without (C20), for `scribe doctor`: a sentence each, kept until the
 * daemon ends. Bounded, so that a fault that repeats itself can't fill the memory.
 */

/** The oldest make room. */
const FINDINGS_MAX = 200;
const SENTENCE_CHARACTERS_MAX = 2_000;

export interface Findings {
  /** One that is there already is not added again. */
  readonly add: (sentence: string) => void;
  readonly list: () => readonly string[];
}

/** Told, in a sentence, what nobody may miss: it goes to the log and to `scribe doctor`. */
export type Report = (sentence: string) => void;

export const reportTo =
  (findings: Pick<Findings, 'add'>, log: { readonly warn: (message: string) => void }): Report =>
  (sentence) => {
    log.warn(sentence);
    findings.add(sentence);
  };

export function createFindings(): Findings {
  const sentences = new Set<string>();
  return {
    add(sentence) {
      sentences.add(sentence.slice(0, SENTENCE_CHARACTERS_MAX));
      const [oldest] = sentences;
      if (sentences.size > FINDINGS_MAX && oldest !== undefined) sentences.delete(oldest);
    },
    list: () => [...sentences],
  };
}
