/** The one thing the journal knows of streams: those of single calls are many and short, so they are kept otherwise. */

/** Streams that are stored as text in the record itself, and are not looked up by name. */
export const isInlineStream = (stream: string): boolean => stream.startsWith('call/');
