/**
 * Streamed lists: the reply of the list call they stand for, of one moment, sent in batches. All list replies have
 * their entries in field 1, and so have the messages of the streams, so batches are cut from the bytes. Must not
 * gather anything itself.
 */
import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { ReadMethod } from '../../domain/call/read-methods.ts';
import type { CallContext } from './context.ts';
import { reading } from './calls.ts';
import type { CriParts } from './parts.ts';

/** A message costs little besides its bytes; a reader that stalls holds back one. */
const BATCH_BYTES = 64 * 1024;

/** Messages of at most so many bytes, each with at least one entry; none of an empty reply. */
export function* batchesOf(reply: Uint8Array, bytesMax: number): Generator<Uint8Array> {
  const reader = new BinaryReader(reply);
  let start = 0;
  let end = 0;
  while (reader.pos < reply.length) {
    const [, wireType] = reader.tag();
    reader.skip(wireType);
    if (end > start && reader.pos - start > bytesMax) {
      yield reply.subarray(start, end);
      start = end;
    }
    end = reader.pos;
  }
  if (end > start) yield reply.subarray(start, end);
}

/** Handler of a streamed list: `list` gives the encoded reply of the call that it stands for. */
export const streamedList =
  <Request extends object>(
    parts: CriParts,
    rpc: ReadMethod,
    subjectOf: (request: Request) => string,
    list: (request: Request) => Promise<Uint8Array> | Uint8Array,
  ) =>
  async (request: Request, context: CallContext, send: (message: Uint8Array) => Promise<void>): Promise<void> => {
    await reading(parts, rpc, subjectOf, async (wanted: Request) => {
      for (const batch of batchesOf(await list(wanted), BATCH_BYTES)) {
        if (context.signal().aborted) return;
        await send(batch);
      }
    })(request, context);
  };
