/** Two effects that are asked for at once, of which the second begins when the first is done, as adapters have it. */

export interface Waiting<A, B> {
  readonly first: <R>(perform: (effect: A) => Promise<R>) => (effect: A) => Promise<R>;
  /** Fails as the first does, when that is under way. */
  readonly second: <R>(perform: (effect: B) => Promise<R>) => (effect: B) => Promise<R>;
}

/** `keyOf` names what both are done to. */
export const waiting = <A, B>(keyOf: (effect: A | B) => string): Waiting<A, B> => {
  const underWay = new Map<string, Promise<unknown>>();
  return {
    first: (perform) => async (effect) => {
      const doing = perform(effect);
      underWay.set(keyOf(effect), doing);
      try {
        return await doing;
      } finally {
        underWay.delete(keyOf(effect));
      }
    },
    second: (perform) => async (effect) => {
      await underWay.get(keyOf(effect));
      return perform(effect);
    },
  };
};
