/**
 * Reads files of /proc whole, in one stay in libuv's pool: Node waits for the pool four times for the shortest one, and again for
 * each page that the kernel gives away at a time, which is hundreds of turns of the loop for the mount table of a crowded node.
 */
import { errno } from 'koffi';
import { native } from './native.ts';
import { inPool, systemError } from './syscalls.ts';

const FIRST_BYTES = 128 * 1024;

const fopen = native<[string, string]>('uintptr_t fopen(const char *path, const char *mode)');
const fread = native<[Uint8Array, number, number, number]>(
  'size_t fread(void *into, size_t size, size_t count, uintptr_t file)',
);
const ferror = native<[number]>('int ferror(uintptr_t file)');
const fclose = native<[number]>('int fclose(uintptr_t file)');

/** Its text, of UTF-8. Rejects as Node's own readFile does where it is not there. */
export const readProcFile = async (path: string): Promise<string> => {
  const file = fopen(path, 're');
  if (file === 0) throw systemError('fopen', errno(), `'${path}'`);
  try {
    const parts: Uint8Array[] = [];
    for (let bytes = FIRST_BYTES; ; bytes *= 2) {
      const part = new Uint8Array(bytes);
      const length = await inPool('fread', `'${path}'`, fread, part, 1, bytes, file);
      parts.push(part.subarray(0, length));
      if (length < bytes) break;
    }
    if (ferror(file) !== 0) throw new Error(`${path} cannot be read`);
    return Buffer.concat(parts).toString('utf8');
  } finally {
    fclose(file);
  }
};
