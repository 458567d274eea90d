/**
 * Patterns in which "*" stands for any characters, also none, and everything else for itself. In one pass over the text,
 * whatever pattern and text are: nobody can make a match take long. Pure.
 */

export function matchesWildcard(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let from = first.length;
  for (const part of rest) {
    // The earliest place leaves most for what comes after it.
    const found = text.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
