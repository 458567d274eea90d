/** What a call does to its object, in the words of audit logs; by the beginning of its method's name. Pure. */
import { readMethods } from '../../../domain/call/read-methods.ts';

export type Verb = 'create' | 'get' | 'update' | 'delete' | 'connect';

const BEGINNINGS: readonly (readonly [RegExp, Verb])[] = [
  [/^(Run|Create|Pull|Load|Restore)/, 'create'],
  [/^Remove/, 'delete'],
  [/^(Exec|Attach|PortForward)/, 'connect'],
];

/** Those that only read are records where the audit rules want it; `Read` is what is left of a pruned one. */
const READS: ReadonlySet<string> = new Set<string>(['Read', 'ReadJournal', ...readMethods]);

export const verbOf = (method: string): Verb =>
  READS.has(method) ? 'get' : (BEGINNINGS.find(([beginning]) => beginning.test(method))?.[1] ?? 'update');
