/** What a call does to its object, in the words of audit logs; by the beginning of its method's name. Pure. */
export type Verb = 'create' | 'update' | 'delete' | 'connect';

const BEGINNINGS: readonly (readonly [RegExp, Verb])[] = [
  [/^(Run|Create|Pull|Load|Restore)/, 'create'],
  [/^Remove/, 'delete'],
  [/^(Exec|Attach|PortForward)/, 'connect'],
];

export const verbOf = (method: string): Verb =>
  BEGINNINGS.find(([beginning]) => beginning.test(method))?.[1] ?? 'update';
