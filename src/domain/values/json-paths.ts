/** Paths into plain data, body.effects[0].kind, and where two pieces of it differ. What is undefined counts as absent. */

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
  return isIndex ? `${path}[${key}]` : memberPath(path, key);
}

/** The path of a member of what `path` names, which is empty for the whole: config.labels["app.kubernetes.io/name"]. */
export function memberPath(path: string, key: string): string {
  if (!PLAIN_KEY.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

const PART = /\.?([^.[\]"]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy;

/** The names on the way to what a path names, from the whole on; null for a text that is no path. */
export const namesOnPath = (path: string): string[] | null => {
  const names: string[] = [];
  let end = 0;
  for (const [part, plain, index, quoted] of path.matchAll(PART)) {
    end += part.length;
    const name = plain ?? index ?? unquoted(quoted ?? '');
    if (name === null) return null;
    names.push(name);
  }
  return end === path.length && end > 0 ? names : null;
};

const unquoted = (text: string): string | null => {
  try {
    return String(JSON.parse(text));
  } catch {
    return null;
  }
};
