/** Parsing JSON of files: what is wrong with it is told by its place, never by quoting it, since it may hold secrets. */

/** " at line 3, column 5", as far as the parser's own message tells; it may quote the text, and is not to be shown. */
export function placeIn(message: string): string {
  const [, line, column] = /line (\d+) column (\d+)/.exec(message) ?? [];
  return line === undefined || column === undefined ? '' : ` at line ${line}, column ${column}`;
}

/** Throws an Error that says "is not JSON" and where, as far as that is known. */
export function parseJson(text: string): unknown {
  let place: string;
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own error goes no further, not even as a cause: logs show causes.
    place = placeIn((error as Error).message);
  }
  throw new Error(`is not JSON${place}`);
}
