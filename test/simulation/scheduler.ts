/**
 * Virtual time: a queue of things to do, each at its moment. One step runs one of them and lets every promise that
 * follows from it settle, so that a history is the same on every run of its seed.
 */
import type { Random } from './random.ts';

interface Task {
  readonly atNs: bigint;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

export interface Scheduler {
  /** The wall clock. */
  readonly nowNs: () => bigint;
  readonly monoNs: () => bigint;
  /** Runs after `delayMs` of virtual time, jittered; the returned function forgets it. */
  readonly after: (delayMs: number, run: () => void) => () => void;
  readonly at: (dueAtNs: bigint, run: () => void) => () => void;
  /** Runs the next task; false when nothing is left to do. */
  readonly step: () => Promise<boolean>;
  readonly steps: () => number;
  /** Somebody sets the wall clock: by so much, forth or back. */
  readonly setClock: (byNs: bigint) => void;
}

const START_NS = 1_800_000_000_000_000_000n;
const MONO_START_NS = 5_000_000_000n;

export function createScheduler(random: Random): Scheduler {
  const queue: Task[] = [];
  let nowNs = START_NS;
  let offsetNs = 0n;
  let order = 0;
  let steps = 0;

  function at(dueAtNs: bigint, run: () => void): () => void {
    const task: Task = { atNs: dueAtNs < nowNs ? nowNs : dueAtNs, order: order++, run, cancelled: false };
    push(queue, task);
    return () => {
      task.cancelled = true;
    };
  }

  return {
    nowNs: () => nowNs + offsetNs,
    monoNs: () => nowNs - START_NS + MONO_START_NS,
    // A timer waits for as long as it has to by the clock as it is now, as those of an event loop do.
    at: (dueAtNs, run) => at(dueAtNs - offsetNs, run),
    after: (delayMs, run) => at(nowNs + BigInt(Math.round(delayMs * 1e6 * (0.5 + random.next()))) + 1n, run),
    async step() {
      for (;;) {
        const task = pop(queue);
        if (task === undefined) return false;
        if (task.cancelled) continue;
        nowNs = task.atNs;
        steps += 1;
        task.run();
        await settled();
        return true;
      }
    },
    steps: () => steps,
    setClock: (byNs) => void (offsetNs += byNs),
  };
}

/** All promise callbacks that are ready run before an immediate does. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const before = (a: Task, b: Task): boolean => a.atNs < b.atNs || (a.atNs === b.atNs && a.order < b.order);

function push(heap: Task[], task: Task): void {
  heap.push(task);
  let index = heap.length - 1;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !before(task, above)) break;
    heap[index] = above;
    heap[parent] = task;
    index = parent;
  }
}

function pop(heap: Task[]): Task | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    const left = heap[child];
    if (left === undefined) break;
    const right = heap[child + 1];
    if (right !== undefined && before(right, left)) child += 1;
    const smaller = heap[child];
    if (smaller === undefined || !before(smaller, last)) break;
    heap[index] = smaller;
    index = child;
  }
  heap[index] = last;
  return top;
}
