/**
 * Functions of native libraries, typed by who declares them: each is given its C declaration, and TypeScript the same in its words.
 * Knows no function itself, and what an error is.
 */
import { type KoffiFunc, type LibraryHandle, load } from 'koffi';

export type NativeFunction<Args extends unknown[]> = KoffiFunc<(...args: Args) => number>;

export const functionsOf =
  (library: LibraryHandle) =>
  <Args extends unknown[]>(definition: string): NativeFunction<Args> =>
    library.func(definition) as NativeFunction<Args>;

/** Of what the program itself has: the C library, and what Node exports. */
export const native = functionsOf(load(null));

/**
 * Makes the call in libuv's pool. errno is the pool thread's, handed over for as long as `judge` looks at the result: what that
 * throws is what the promise rejects with.
 */
export const callInPool = <Args extends unknown[]>(
  call: NativeFunction<Args>,
  args: Args,
  judge: (result: number) => number = (result) => result,
): Promise<number> =>
  new Promise((resolve, reject) => {
    call.async(...args, (failure: Error | null, result: number) => {
      if (failure) return reject(failure);
      try {
        resolve(judge(result));
      } catch (thrown) {
        reject(thrown);
      }
    });
  });
