/** Where two pieces of plain data differ, as paths: body.effects[0].kind. What is undefined counts as absent. */

export interface PathDifference {
  /** Empty: as a whole. */
  readonly path: string;
  /** undefined: absent. */
  readonly before: unknown;
  readonly after: unknown;
}

/** The innermost places that differ, in the order of `before`, then what only `after` has. */
export function* differingPaths(before: unknown, after: unknown, path = ''): Generator<PathDifference> {
  if (before === after) return;
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) {
    yield { path, before, after };
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
    yield* differingPaths(before[key], after[key], joined(path, key, Array.isArray(before)));
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/;

function joined(path: string, key: string, isIndex: boolean): string {
  if (isIndex) return `${path}[${key}]`;
  if (!PLAIN_KEY.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}
