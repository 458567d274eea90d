/**
 * One registered plugin, as long as its connection lasts: its requests one after the other, each within its deadline.
 * Nothing that it does or fails to do reaches another plugin. Decides only whether it stays connected, by the policy that
 * it was given, and what is asked of one that stays and is silent.
 */
import { GrpcCode } from '../../domain/model/errors.ts';
import { createSemaphore } from '../../platform/linux/semaphore.ts';
import { callMethod } from '../../platform/ttrpc/method.ts';
import { TtrpcStatusError } from '../../platform/ttrpc/status.ts';
import { type Container, PluginDefinition, type PodSandbox } from '../../wire/nri/api.ts';
import type { Registration } from './connection.ts';
import { createHealth } from './health.ts';
import type {
  NriAnswer,
  NriAsked,
  NriFailure,
  NriHook,
  NriPlugin,
  NriPluginState,
  NriPluginStatus,
  NriSynchronized,
  RequestOf,
} from './plugins.ts';
import { pluginName } from '../../domain/nri/plugins.ts';
import { bare } from '../../domain/values/sentence.ts';
import type { PluginPolicy } from './policy.ts';
import {
  type Asked,
  describeFailure,
  failureKindOf,
  failureOf,
  isUnimplemented,
  notAsked,
  refusalOf,
  sendRequest,
} from './request.ts';
import { sendAll, synchronizeTimeoutMs } from './synchronize.ts';

export interface Session {
  readonly plugin: NriPlugin;
  readonly ask: <H extends NriHook>(hook: H, request: RequestOf<H>) => Promise<NriAnswer<H>>;
  readonly synchronize: (pods: readonly PodSandbox[], containers: readonly Container[]) => Promise<NriSynchronized>;
  readonly status: () => NriPluginStatus;
  readonly close: (reason: string) => void;
  /** Tells it that we end, waits for its answer no longer than `timeoutMs`, and closes. */
  readonly shutDown: (timeoutMs: number) => Promise<void>;
  /** Resolves with the reason. */
  readonly closed: Promise<string>;
  /** Whether it was closed for what it did or did not do: neither did it leave, nor do we end. */
  readonly wasDropped: () => boolean;
}

/** With more unread bytes than this a plugin gets no more until it has read them. */
const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
/**
 * A plugin that stays however often it is late is silent after so many misses in a row. From then on whoever waited behind
 * a request that it missed is told so, and not made to wait for another deadline: of many pods at once none waits for each.
 */
const SILENT_MISSES = 3;
const NS_PER_MS = 1_000_000n;
const WE_END = 'scribe ended';

/** `before`: when whoever waits now began to. */
const isSilent = (misses: number, before: number): boolean => misses >= SILENT_MISSES && misses > before;

const silenceOf = (misses: number, timeoutMs: number): string =>
  `it gave no answer to the last ${misses} requests within ${timeoutMs} ms`;

export const createSession = (
  plugin: NriPlugin,
  { connection, subscribedToAll }: Pick<Registration, 'connection' | 'subscribedToAll'>,
  { requestTimeoutMs, missesMax, binding }: PluginPolicy,
  warn: (message: string) => void,
): Session => {
  const name = pluginName(plugin);
  const turn = createSemaphore(1);
  const health = createHealth();
  const unknown = new Set<NriHook>();
  const asked = { client: connection.client, timeoutMs: requestTimeoutMs, former: new Set<NriHook>() };
  const registeredNs = BigInt(Date.now()) * NS_PER_MS;
  let state: Extract<NriPluginState, 'registered' | 'synchronizing' | 'active'> = 'registered';
  let closeReason: string | null = null;

  const close = (reason: string): void => {
    closeReason ??= reason;
    connection.close();
  };
  const closed = connection.closed.then((cause) => {
    if (cause !== undefined) closeReason ??= `what came from it is no NRI: ${cause.message}`;
    return closeReason ?? 'it disconnected';
  });

  const failed = (asked: Asked, error: unknown, sinceNs: bigint): NriFailure => {
    const kind = failureKindOf(error);
    const message = describeFailure(name, asked, kind, error);
    health.failed(kind === 'timedOut', message);
    // What is refused at an end, or after the fact, stops nothing: nobody hears of it otherwise.
    if (kind === 'timedOut' || kind === 'refused') warn(message);
    const misses = health.missesInARow();
    if (kind === 'garbage') close(`what it answered to ${asked.what} is no answer`);
    else if (missesMax !== null && misses >= missesMax) close(`it missed ${misses} deadlines in a row`);
    // Whoever asked says in its own words who refused what.
    return failureOf(kind, kind === 'refused' ? refusalOf(error) : message, process.hrtime.bigint() - sinceNs);
  };

  const answeredSince = (what: NriAsked, sinceNs: bigint): bigint => {
    const durationNs = process.hrtime.bigint() - sinceNs;
    health.answered(what, durationNs);
    return durationNs;
  };

  const send = async <H extends NriHook>(hook: H, request: RequestOf<H>): Promise<NriAnswer<H>> => {
    const sinceNs = process.hrtime.bigint();
    try {
      if (connection.backlogBytes() > BACKLOG_BYTES_MAX)
        throw new TtrpcStatusError(GrpcCode.DEADLINE_EXCEEDED, 'it has not read what it was sent before');
      const answer = await sendRequest(asked, hook, request);
      return { ok: true, answer, durationNs: answeredSince(hook, sinceNs) };
    } catch (error) {
      // Who wants to hear of everything need not know everything.
      if (!subscribedToAll || !isUnimplemented(error))
        return failed({ what: hook, timeoutMs: requestTimeoutMs }, error, sinceNs);
      unknown.add(hook);
      return notAsked(name, 'unsubscribed', `it does not know ${hook}`);
    }
  };

  const silence = async (): Promise<NriFailure> =>
    notAsked(name, 'timedOut', silenceOf(health.missesInARow(), requestTimeoutMs));

  const sendState = async (pods: readonly PodSandbox[], containers: readonly Container[]): Promise<NriSynchronized> => {
    const sinceNs = process.hrtime.bigint();
    const timeoutMs = synchronizeTimeoutMs(requestTimeoutMs, pods.length + containers.length);
    try {
      const update = await sendAll(connection.client, pods, containers, timeoutMs);
      state = 'active';
      return { ok: true, update, durationNs: answeredSince('Synchronize', sinceNs) };
    } catch (error) {
      const failure = failed({ what: 'Synchronize', timeoutMs }, error, sinceNs);
      close(`it could not be synchronized: ${bare(failure.message)}`);
      return failure;
    }
  };

  return {
    plugin,
    ask: async (hook, request) => {
      if (!plugin.events.includes(hook) || unknown.has(hook))
        return notAsked(name, 'unsubscribed', `it has not subscribed to ${hook}`);
      // Each request has one, which the compiler can't see.
      const { pod } = request as { readonly pod: PodSandbox | undefined };
      if (!binding.includes(pod)) return notAsked(name, 'unsubscribed', 'it is bound to other pods');
      if (state === 'registered') return notAsked(name, 'closed', 'it is not synchronized yet');
      const misses = health.missesInARow();
      return await turn(null, () =>
        missesMax === null && isSilent(health.missesInARow(), misses) ? silence() : send(hook, request),
      );
    },
    synchronize: async (pods, containers) => {
      if (state !== 'registered') return notAsked(name, 'refused', 'it is synchronized already');
      state = 'synchronizing';
      const part = binding.partOf(pods, containers);
      return await turn(null, () => sendState(part.pods, part.containers));
    },
    status: () => {
      const { id, index, name: ownName, launched, pid, events, nriVersion } = plugin;
      return { id, index, name: ownName, launched, pid, events, nriVersion, registeredNs, state, ...health.figures() };
    },
    close,
    wasDropped: () => closeReason !== null && closeReason !== WE_END,
    shutDown: async (timeoutMs) => {
      const { fullName: service, methods } = PluginDefinition;
      await callMethod(connection.client, service, methods.shutdown, {}, { timeoutMs }).catch(() => undefined);
      close(WE_END);
    },
    closed,
  };
};
