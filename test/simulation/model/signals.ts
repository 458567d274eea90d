/**
 * Which signals a container may get: its stop signal once, when somebody asked for a stop with time to spare; SIGKILL
 * when that time is over, when there was none, or when its end was asked for.
 */
import type { Node } from './words.ts';

const SIGKILL = 9;
const NS_PER_S = 1_000_000_000n;

interface Wanted {
  podSandboxId: string;
  /** When its time is over, by the most impatient; null: nobody asked. */
  killAtNs: bigint | null;
  ended: boolean;
  polite: number;
  /** How often a polite signal may be repeated: it failed, or whoever sent it forgot. */
  excuses: number;
}

export interface Signals {
  readonly stopAsked: (id: string, atNs: bigint, timeoutSeconds: bigint) => void;
  readonly endAsked: (id: string) => void;
  readonly podEndAsked: (podSandboxId: string) => void;
  readonly belongs: (id: string, podSandboxId: string) => void;
  readonly sent: (id: string, podSandboxId: string, signal: number, atNs: bigint) => void;
  /** A signal was not delivered, or nobody heard whether it was. */
  readonly failed: (id: string) => void;
  /** A new daemon does not know whether a signal of the old one was delivered. */
  readonly restarted: () => void;
}

export function createSignals(node: Node, fail: (message: string) => never): Signals {
  const wanted = new Map<string, Wanted>();
  const pods = new Set<string>();
  const of = (id: string): Wanted => {
    const known = wanted.get(id) ?? { podSandboxId: '', killAtNs: null, ended: false, polite: 0, excuses: 0 };
    wanted.set(id, known);
    return known;
  };
  return {
    stopAsked(id, atNs, timeoutSeconds) {
      const stop = of(id);
      const killAtNs = timeoutSeconds <= 0n ? atNs : atNs + timeoutSeconds * NS_PER_S;
      if (stop.killAtNs === null || killAtNs < stop.killAtNs) stop.killAtNs = killAtNs;
    },
    endAsked: (id) => void (of(id).ended = true),
    podEndAsked: (podSandboxId) => void pods.add(podSandboxId),
    belongs: (id, podSandboxId) => void (of(id).podSandboxId = podSandboxId),
    failed: (id) => void (of(id).excuses += 1),
    restarted() {
      for (const one of wanted.values()) one.excuses += 1;
    },
    sent(id, podSandboxId, signal, atNs) {
      // A pod's own holder is ended with its pod, or with a creation that is undone.
      if (id === podSandboxId) return;
      const stop = of(id);
      const isEnding = stop.ended || pods.has(podSandboxId);
      if (stop.killAtNs === null && !isEnding)
        fail(`Container ${id} is sent signal ${signal} and nobody asked for its end.`);
      if (signal === SIGKILL) {
        if (!node.clockWasSet() && !isEnding && stop.killAtNs !== null && atNs < stop.killAtNs)
          fail(`Container ${id} is killed ${stop.killAtNs - atNs} ns before its time is over.`);
        return;
      }
      stop.polite += 1;
      if (stop.polite > 1 + stop.excuses) fail(`Container ${id} is sent signal ${signal} a second time.`);
    },
  };
}
