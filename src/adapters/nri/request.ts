/** One request to one plugin, and what is to be made of how it ended. Keeps nothing of a plugin. */
import { GrpcCode, messageOf } from '../../domain/model/errors.ts';
import type { TtrpcClient } from '../../platform/ttrpc/client.ts';
import { callMethod } from '../../platform/ttrpc/method.ts';
import { hasStatus, isClosed, isTimeout, TtrpcGarbageError } from '../../platform/ttrpc/status.ts';
import { PluginDefinition } from '../../wire/nri/api.ts';
import { methodOf, stateChangeOf, wasStateChange } from './hooks.ts';
import { ownWords } from './messages/reading.ts';
import type { AnswerOf, NriAsked, NriFailure, NriFailureKind, NriHook, RequestOf } from './plugins.ts';

const SERVICE = PluginDefinition.fullName;

/** garbage: what came back is none of the protocol, and so the connection is of no more use. */
export type RequestFailureKind = NriFailureKind | 'garbage';

export const isUnimplemented = (error: unknown): boolean => hasStatus(error, GrpcCode.UNIMPLEMENTED);

/** The one who is asked, as far as a request goes. */
export interface AskedPlugin {
  readonly client: TtrpcClient;
  readonly timeoutMs: number;
  /** Hooks that it hears of by StateChange: added here when it turns out. */
  readonly former: Set<NriHook>;
}

/** The answer; rejects as ttrpc does. A plugin of the time before the hook had an RPC of its own is told by StateChange. */
export const sendRequest = async <H extends NriHook>(
  { client, timeoutMs, former }: AskedPlugin,
  hook: H,
  request: RequestOf<H>,
): Promise<AnswerOf<H>> => {
  const method = methodOf(hook);
  if (!former.has(hook)) {
    try {
      return await callMethod(client, SERVICE, method, request, { timeoutMs });
    } catch (error) {
      if (!isUnimplemented(error) || !wasStateChange(hook)) throw error;
      former.add(hook);
    }
  }
  const stateChange = stateChangeOf(hook, request);
  await callMethod(client, SERVICE, PluginDefinition.methods.stateChange, stateChange, { timeoutMs });
  return method.responseType.decode(new Uint8Array());
};

export const failureKindOf = (error: unknown): RequestFailureKind => {
  if (isClosed(error)) return 'closed';
  if (isTimeout(error)) return 'timedOut';
  return error instanceof TtrpcGarbageError ? 'garbage' : 'refused';
};

export const failureOf = (kind: RequestFailureKind, message: string, durationNs: bigint): NriFailure => ({
  ok: false,
  why: kind === 'garbage' ? 'closed' : kind,
  message,
  durationNs,
});

/** `why` goes on from "it was not asked". */
export const notAsked = (plugin: string, kind: NriFailureKind, why: string): NriFailure =>
  failureOf(kind, `The NRI plugin ${plugin} was not asked: ${why}.`, 0n);

/** What was asked, and how long it had for it. */
export interface Asked {
  readonly what: NriAsked;
  readonly timeoutMs: number;
}

/** What a plugin said when it refused a request. */
export const refusalOf = (error: unknown): string => ownWords(messageOf(error));

/** In words, with what the plugin said of it. */
export const describeFailure = (
  name: string,
  { what, timeoutMs }: Asked,
  kind: RequestFailureKind,
  error: unknown,
): string => {
  const plugin = `The NRI plugin ${name}`;
  switch (kind) {
    case 'closed':
      return `${plugin} went away before it answered ${what}.`;
    case 'timedOut':
      return `${plugin} did not answer ${what} within ${timeoutMs} ms.`;
    case 'garbage':
      return `${plugin} answered ${what} with what is no answer (${messageOf(error)}).`;
    case 'refused':
      return `${plugin} refused ${what}: ${refusalOf(error)}`;
    case 'unsubscribed':
      return `${plugin} does not know ${what}.`;
  }
};
