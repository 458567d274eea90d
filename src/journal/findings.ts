/** What checks of a journal collect, and how one that can't look does not keep the others from it. */
import type { Finding } from './chain-check.ts';
import { errorOf } from './errors.ts';

export type Find = (seq: number | null, what: string, kind?: Pick<Finding, 'isUnchecked'>) => void;

export const createFindings = () => {
  const findings: Finding[] = [];
  const find: Find = (seq, what, kind) => findings.push({ seq, what, ...kind });
  /** What a check gives; `otherwise` where it throws, which is a finding. */
  const tried = <T>(what: string, otherwise: T, check: () => T): T => {
    try {
      return check();
    } catch (thrown) {
      find(null, `The ${what} cannot be read: ${errorOf(thrown).message}.`);
      return otherwise;
    }
  };
  return {
    findings: findings as readonly Finding[],
    find,
    tried,
    checked: (what: string, check: () => void): void => tried(what, undefined, check),
    counted: (what: string, check: () => number): number => tried(what, 0, check),
  };
};

export const sameBytes = (a: unknown, b: Uint8Array): boolean => a instanceof Uint8Array && Buffer.from(b).equals(a);
