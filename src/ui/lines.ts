/** Lines of text from bytes that come in pieces. Pure. */

/** Lines of text, as they come. */
export async function* linesIn(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let held = '';
  for await (const chunk of bytes) {
    const lines = (held + decoder.decode(chunk, { stream: true })).split('\n');
    held = lines.pop() ?? '';
    yield* lines;
  }
  return undefined;
}
