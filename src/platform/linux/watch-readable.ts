/** Descriptors of pipes and FIFOs that are read where nothing else may be done between two reads: no stream, no buffer. */
import { readSync } from 'node:fs';
import { node } from 'koffi';
import { errorCodeOf } from '../error-code.ts';

/**
 * Calls back whenever there is something to read, or the last writer has gone; not while none has come yet. Does not keep
 * the event loop running by itself. The function that it gives ends that; call it before the descriptor is closed.
 */
export const watchReadable = (fd: number, onReadable: () => void): (() => void) => {
  const watch = node.poll(fd, { readable: true }, onReadable);
  watch.unref();
  return () => watch.close();
};

/** What a descriptor that never waits (O_NONBLOCK) has at this moment: bytes, which are thrown away; its end; or neither. */
export const readAway = (fd: number, bytesMax: number): 'bytes' | 'end' | 'nothing' => {
  try {
    return readSync(fd, Buffer.alloc(bytesMax)) > 0 ? 'bytes' : 'end';
  } catch (error) {
    if (errorCodeOf(error) === 'EAGAIN') return 'nothing';
    throw error;
  }
};
