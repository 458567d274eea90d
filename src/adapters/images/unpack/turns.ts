/**
 * Who unpacks next, so many at a time. A layer goes to the process that has just unpacked one below it (processes.ts), so
 * others come first that have none below them still to come; of those it is the first who asked. One that is unpacked sooner
 * than a process starts waits for that of another such below it. Must not know what a turn is used for.
 */

/** Where a layer is among those of images: by chain ids, those below it base first. */
export interface ChainPlace {
  readonly chainId: string;
  readonly below: readonly string[];
  /** It is unpacked sooner than a process can be started. */
  readonly isQuick: boolean;
}

export interface Turns {
  /** Runs `work` when there is room. Rejects with the signal's reason for a caller that gives up. */
  readonly inTurn: <T>(asked: AskedTurn, work: () => Promise<T>) => Promise<T>;
  /** Those layers are to be unpacked, in whatever order they come: each until it begins, or the returned function is called. */
  readonly await: (places: readonly ChainPlace[]) => () => void;
  /** The layer is there, or will not be. */
  readonly forget: (place: ChainPlace) => void;
  /** What unpacks a layer below it will be free before another process could have started. */
  readonly waitsForBelow: (place: ChainPlace) => boolean;
  /** Takes room, be there any or not, for a layer that has begun without a turn, from `arrived` until the returned function is called. */
  readonly occupy: (place: ChainPlace, arrived: Promise<unknown>) => () => void;
}

export interface AskedTurn {
  readonly signal: AbortSignal;
  /** null: it is no layer. */
  readonly place: ChainPlace | null;
  /** Its turn doesn't come before this resolves; null: it may come at once. */
  readonly ready: Promise<unknown> | null;
}

interface Waiting {
  readonly place: ChainPlace | null;
  readonly admit: () => void;
  isReady: boolean;
}

export const isAbove = (place: ChainPlace | null, lower: ChainPlace | null): boolean =>
  place !== null && lower !== null && place.below.includes(lower.chainId);

/** Layers that are to be unpacked and have not begun, of whichever images. */
const createAwaited = () => {
  const awaited = new Set<ChainPlace>();
  /** Whoever awaits one that has begun, for another image, waits for the same. */
  const begun = new Set<string>();
  const remove = (isRemoved: (place: ChainPlace) => boolean): void => {
    for (const place of awaited) if (isRemoved(place)) awaited.delete(place);
  };
  return {
    now: (): Iterable<ChainPlace> => awaited,
    add: (places: readonly ChainPlace[]): (() => void) => {
      const own = new Set(places.filter(({ chainId }) => !begun.has(chainId)).map((place) => ({ ...place })));
      for (const place of own) awaited.add(place);
      return () => remove((place) => own.has(place));
    },
    begin: ({ chainId }: ChainPlace): void => {
      begun.add(chainId);
      remove((place) => place.chainId === chainId);
    },
    forget: ({ chainId }: ChainPlace): void => {
      begun.delete(chainId);
      remove((place) => place.chainId === chainId);
    },
  };
};

export const createTurns = (room: number): Turns => {
  const waiting: Waiting[] = [];
  const running: (ChainPlace | null)[] = [];
  const arriving = new Set<ChainPlace>();
  const awaited = createAwaited();

  const waitsForBelow = (place: ChainPlace | null): boolean =>
    place?.isQuick === true &&
    [...running, ...arriving, ...awaited.now()].some((lower) => lower?.isQuick === true && isAbove(place, lower));

  const nextAfter = (left: ChainPlace | null): Waiting | undefined => {
    const ready = waiting.filter(({ isReady, place }) => isReady && !waitsForBelow(place));
    const first = ready.filter(({ place }) => !waiting.some((lower) => isAbove(place, lower.place)));
    return (
      ready.find(({ place }) => isAbove(place, left)) ??
      first.find(({ place }) => !running.some((lower) => isAbove(place, lower))) ??
      first[0] ??
      // What is below it is still on its way, and nobody has anything to do meanwhile.
      (running.length === 0 ? ready[0] : undefined)
    );
  };
  const admit = (left: ChainPlace | null): void => {
    const next = running.length < room ? nextAfter(left) : undefined;
    if (next === undefined) return;
    waiting.splice(waiting.indexOf(next), 1);
    if (next.place !== null) awaited.begin(next.place);
    running.push(next.place);
    next.admit();
    // What waited for one below may be more than one.
    admit(null);
  };
  const leave = (place: ChainPlace | null): void => {
    running.splice(running.indexOf(place), 1);
    admit(place);
  };

  const enter = ({ signal, place, ready }: AskedTurn): Promise<void> => {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = (): void => {
      waiting.splice(waiting.indexOf(own), 1);
      reject(signal.reason as Error);
    };
    const own: Waiting = {
      place,
      admit: () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      },
      isReady: ready === null,
    };
    signal.addEventListener('abort', giveUp, { once: true });
    waiting.push(own);
    const becomeReady = (): void => {
      own.isReady = true;
      admit(null);
    };
    if (ready === null) admit(null);
    else void ready.then(becomeReady);
    return promise;
  };

  return {
    waitsForBelow,
    await: (places) => {
      const giveUp = awaited.add(places);
      return () => {
        giveUp();
        admit(null);
      };
    },
    forget: (place) => {
      awaited.forget(place);
      admit(null);
    },
    inTurn: async (asked, work) => {
      await enter(asked);
      try {
        return await work();
      } finally {
        leave(asked.place);
      }
    },
    occupy: (place, arrived) => {
      awaited.begin(place);
      arriving.add(place);
      const begin = (): void => {
        if (arriving.delete(place)) running.push(place);
      };
      void arrived.then(begin, () => undefined);
      return () => {
        if (arriving.delete(place)) admit(null);
        else if (running.includes(place)) leave(place);
      };
    },
  };
};
