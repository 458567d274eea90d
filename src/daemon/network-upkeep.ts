/**
 * Looks after the pod network beyond attaching and detaching: asks plugins whether they are ready when a client wants to
 * know (STATUS), has them collect what no pod owns (GC), and asks them whether the attachments of ready pods still
 * stand (CHECK). No start waits for it, and it mends nothing: it says what is wrong.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { CniAdapter } from '../adapters/cni/adapter.ts';
import { messageOf } from '../domain/model/errors.ts';
import { takesRuncOptions } from '../domain/model/runtime-handler.ts';
import type { PodSandbox } from '../domain/model/state.ts';
import { orAfter } from '../platform/rpc/timeout.ts';

/** What a restart brings is behind the daemon by then. */
const FIRST_ROUND_MS = 5_000;
const ROUND_EVERY_MS = 3_600_000;
/**
 * Between two pods that are checked: that runs some programs, 60 ms of a processor in all. A round takes as long as there is, so that
 * nobody notices it, but for a few pods, which wait no longer than these.
 */
const PAUSE_MS_MIN = 5_000;
const PAUSE_MS_MAX = 60_000;
/** Clients that ask one after the other get the same answer for so long. */
const STATUS_FRESH_MS = 1_000;
/** Plugins that take longer have said nothing yet, and their last word stands. */
const STATUS_WAIT_MS = 2_000;

export interface NetworkUpkeepOptions {
  readonly cni: Pick<CniAdapter, 'status' | 'gc' | 'check'>;
  /** As they are now, with every pod whose network was ever to be attached. */
  readonly sandboxes: () => Iterable<PodSandbox>;
  /** Otherwise nothing is collected: what no pod in the journal owns may be of one that runs. */
  readonly knowsAllPods: boolean;
  /** Between two pods that are checked; absent: what spreads them over a round. */
  readonly pauseMs?: number;
  readonly monoMs: () => number;
  readonly log: {
    readonly info: (fields: object, message: string) => void;
    readonly warn: (fields: object, message: string) => void;
  };
  /** Told, in a sentence, what nobody may miss. */
  readonly report: (message: string) => void;
}

export interface NetworkUpkeep {
  /** Why the plugins take no pods now; null when they do, or cannot be asked. */
  readonly problem: () => Promise<string | null>;
  /** The daemon serves: rounds may begin. */
  readonly served: () => void;
  /** Collects and checks once; served does so from time to time. */
  readonly round: () => Promise<void>;
  readonly close: () => void;
}

type Attachments = ReturnType<Parameters<CniAdapter['gc']>[0]>;

/** Every pod that plugins may keep something for, whatever became of it. */
const attachmentsOf = (sandboxes: Iterable<PodSandbox>): Attachments =>
  [...sandboxes].flatMap(({ network, steps }) =>
    network === null || steps.network === undefined || steps.network === 'undone'
      ? []
      : [{ containerID: network.podSandboxId, ifname: network.ifName }],
  );

export const pauseMsFor = (pods: number): number =>
  Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, ROUND_EVERY_MS / pods));

const isAttached = ({ phase, steps }: PodSandbox): boolean => phase === 'ready' && steps.network === 'done';

/** Other shims' sandboxes may take the addresses from the interfaces, for a network of their own, as gVisor's do. */
const standsAsMade = (sandbox: PodSandbox): boolean => isAttached(sandbox) && takesRuncOptions(sandbox.handler);

export function createNetworkUpkeep(options: NetworkUpkeepOptions): NetworkUpkeep {
  const { cni, sandboxes, monoMs, log, report } = options;
  const closed = new AbortController();
  const isClosed = (): boolean => closed.signal.aborted;
  let told: { readonly problem: string | null; readonly atMs: number } | null = null;
  let asking: Promise<void> | null = null;
  /** What CHECK said last, by pod. */
  const failing = new Map<string, string>();
  let timer: NodeJS.Timeout | null = null;

  async function ask(): Promise<void> {
    const { networkName, problem: found } = await cni.status();
    // Whether there is a network at all is in the journal.
    const problem = networkName === null ? null : found;
    const before = told?.problem ?? null;
    told = { problem, atMs: monoMs() };
    if (problem === before) return;
    if (problem === null) log.info({}, 'the pod network is ready again');
    else log.warn({ problem }, 'the pod network is not ready');
  }

  async function problem(): Promise<string | null> {
    if (told !== null && monoMs() - told.atMs < STATUS_FRESH_MS) return told.problem;
    asking ??= ask().finally(() => {
      asking = null;
    });
    await orAfter(asking, STATUS_WAIT_MS, undefined);
    return told === null ? 'the CNI plugins were asked for their STATUS and have not answered yet' : told.problem;
  }

  const find = (id: string): PodSandbox | undefined => [...sandboxes()].find((sandbox) => sandbox.id === id);

  async function check({ id, network, networkResult }: PodSandbox): Promise<void> {
    if (network === null) return;
    let message: string | null = null;
    try {
      if (!(await cni.check(network, networkResult))) return;
    } catch (error) {
      message = messageOf(error);
    }
    const now = find(id);
    // One that is being stopped meanwhile has no network to stand.
    if (now === undefined || !standsAsMade(now)) failing.delete(id);
    else if (message === null) {
      if (failing.delete(id)) log.info({ podSandboxId: id }, 'the attachment of the pod stands again');
    } else if (failing.get(id) !== message) {
      failing.set(id, message);
      report(`The network of a pod is not as it was made: ${message}`);
    }
  }

  async function collect(): Promise<void> {
    try {
      await cni.gc(() => attachmentsOf(sandboxes()));
    } catch (error) {
      report(`What no pod owns could not be collected: ${messageOf(error)}`);
    }
  }

  async function round(): Promise<void> {
    if (options.knowsAllPods) await collect();
    const attached = [...sandboxes()].filter(standsAsMade).map(({ id }) => id);
    for (const id of failing.keys()) if (!attached.includes(id)) failing.delete(id);
    const pauseMs = options.pauseMs ?? pauseMsFor(attached.length);
    for (const id of attached) {
      const sandbox = find(id);
      if (isClosed()) return;
      if (sandbox === undefined || !standsAsMade(sandbox)) continue;
      await check(sandbox);
      await delay(pauseMs, undefined, { signal: closed.signal, ref: false }).catch(() => undefined);
    }
  }

  function schedule(afterMs: number): void {
    timer = setTimeout(() => {
      const nextAtMs = monoMs() + ROUND_EVERY_MS;
      void round().finally(() => {
        if (!isClosed()) schedule(Math.max(0, nextAtMs - monoMs()));
      });
    }, afterMs).unref();
  }

  return {
    problem,
    served: () => schedule(FIRST_ROUND_MS),
    round,
    close() {
      closed.abort();
      if (timer !== null) clearTimeout(timer);
    },
  };
}
