/**
 * The memory in which a library keeps a stream that it inflates, with the buffers between which that is: what it reads next, and
 * where it writes to. Both libraries have pointers of 64 bits and lengths of 32 for these, each at places of its own.
 */
import { address } from 'koffi';

export interface StreamPlaces {
  readonly nextIn: number;
  readonly availableIn: number;
  readonly nextOut: number;
  readonly availableOut: number;
}

export const createStreamMemory = (sizeBytes: number, places: StreamPlaces) => {
  // Not of a pool that others write to; memory of buffers does not move.
  const memory = Buffer.from(new ArrayBuffer(sizeBytes));
  let given: Buffer = Buffer.alloc(0);
  const leftBytes = (): number => memory.readUInt32LE(places.availableIn);
  return {
    memory,
    leftBytes,
    give: (input: Buffer): void => {
      given = input;
      memory.writeBigUInt64LE(address(input), places.nextIn);
      memory.writeUInt32LE(input.length, places.availableIn);
    },
    peek: (): number | undefined => given[given.length - leftBytes()],
    /** What is inflated next goes there, from its beginning. */
    offer: (output: Buffer): void => {
      memory.writeBigUInt64LE(address(output), places.nextOut);
      memory.writeUInt32LE(output.length, places.availableOut);
    },
    /** Of the output that was offered last. */
    writtenBytes: (output: Buffer): number => output.length - memory.readUInt32LE(places.availableOut),
  };
};
