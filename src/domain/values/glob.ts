/**
 * Glob patterns for names as the configuration has them, in the form of Go's path.Match: "*" and "?" stand for anything
 * but "/", "[a-z]" and "[^a-z]" for one character, "\" takes the next one as it is. Pure.
 */

/** The pattern as a regular expression that is anchored at both ends; null where it has no right form. */
export function globExpression(pattern: string): RegExp | null {
  const parts: string[] = [];
  for (let rest = pattern; rest !== ''; ) {
    // A "]" or "-" of a class is written "\]" or "\-".
    const [token = ''] = /^(?:\*+|\[(?!\^?\])\^?(?:\\.|[^\]\\])+\]|\\.|[^[\\])/su.exec(rest) ?? [];
    if (token === '') return null;
    parts.push(expressionOf(token));
    rest = rest.slice(token.length);
  }
  try {
    return new RegExp(`^${parts.join('')}$`, 'su');
  } catch {
    // A range such as z-a.
    return null;
  }
}

const literal = (character: string): string => character.replace(/[\^$\\.*+?()[\]{}|/-]/u, '\\$&');

function expressionOf(token: string): string {
  if (token.startsWith('*')) return '[^/]*';
  if (token === '?') return '[^/]';
  if (token.startsWith('\\')) return literal(token.slice(1));
  return token.startsWith('[') && token.length > 1 ? classOf(token) : literal(token);
}

function classOf(token: string): string {
  const [, not = '', inner = ''] = /^\[(\^?)(.*)\]$/su.exec(token) ?? [];
  const characters = [...inner.matchAll(/\\(.)|([^\\])/gsu)].map(([, escaped, plain = '']) =>
    escaped !== undefined ? literal(escaped) : plain === '-' ? plain : literal(plain),
  );
  return `[${not}${characters.join('')}]`;
}

/** The entries whose key is matched by any of the patterns. */
export function withMatchingKeys(
  entries: Readonly<Record<string, string>>,
  patterns: readonly string[] | undefined,
): Readonly<Record<string, string>> {
  if (patterns === undefined || patterns.length === 0) return {};
  const expressions = patterns.map(globExpression);
  return Object.fromEntries(
    Object.entries(entries).filter(([key]) => expressions.some((expression) => expression?.test(key) === true)),
  );
}
