/**
 * A clock that jumps from one thing that is due to the next: a day of a node passes in seconds, the same every time.
 * What is due at the same moment fires in the order in which it was asked for.
 */
import type { Clock } from '../../../src/engine/ports.ts';

const NS_PER_MS = 1_000_000n;
const NS_PER_US = 1000;

export interface VirtualClock extends Clock {
  readonly sleep: (ms: number) => Promise<void>;
  /** Jumps to what is due next and fires it; false when nothing is. */
  readonly step: () => boolean;
}

interface Timer {
  readonly dueUs: number;
  readonly order: number;
  fire: (() => void) | null;
}

const isBefore = (one: Timer, other: Timer): boolean =>
  one.dueUs < other.dueUs || (one.dueUs === other.dueUs && one.order < other.order);

/** A binary heap: the earliest is first. */
const createQueue = () => {
  const heap: Timer[] = [];
  const at = (index: number): Timer => heap[index] as Timer;
  const swap = (one: number, other: number): void => {
    [heap[one], heap[other]] = [at(other), at(one)];
  };
  const rise = (from: number): void => {
    for (let child = from; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!isBefore(at(child), at(parent))) return;
      swap(child, parent);
      child = parent;
    }
  };
  const sink = (): void => {
    for (let parent = 0; ; ) {
      const children = [2 * parent + 1, 2 * parent + 2].filter((child) => child < heap.length);
      const least = children.reduce((best, child) => (isBefore(at(child), at(best)) ? child : best), parent);
      if (least === parent) return;
      swap(parent, least);
      parent = least;
    }
  };
  return {
    push(timer: Timer): void {
      heap.push(timer);
      rise(heap.length - 1);
    },
    pop(): Timer | null {
      const [first] = heap;
      if (first === undefined) return null;
      const last = heap.pop() as Timer;
      if (heap.length > 0) {
        heap[0] = last;
        sink();
      }
      return first;
    },
  };
};

export const createVirtualClock = (startNs: bigint): VirtualClock => {
  const queue = createQueue();
  let us = 0;
  let order = 0;
  const add = (dueUs: number, fire: () => void): (() => void) => {
    const timer: Timer = { dueUs: Math.max(us, dueUs), order: order++, fire };
    queue.push(timer);
    return () => {
      timer.fire = null;
    };
  };
  const monoNs = (): bigint => BigInt(us) * BigInt(NS_PER_US);
  return {
    monoNs,
    nowNs: () => startNs + monoNs(),
    at: (dueAtNs, fire) => add(Number((dueAtNs - startNs) / 1000n), fire),
    sleep: (ms) =>
      new Promise((resolve) => {
        add(us + Math.round(ms * Number(NS_PER_MS / 1000n)), resolve);
      }),
    step() {
      const timer = queue.pop();
      if (timer === null) return false;
      us = timer.dueUs;
      timer.fire?.();
      return true;
    },
  };
};
