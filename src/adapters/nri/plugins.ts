/**
 * What the parts of this adapter know of plugins, in wire messages: asking one, synchronizing one, and what comes from
 * them. Types only. Who is asked, in which order, and what an answer or a failure means is the domain's to decide.
 */
import type { Observable } from 'rxjs';
import type { NriFailurePolicy } from '../../domain/model/nri-settings.ts';
import type {
  Container,
  ContainerEviction,
  ContainerUpdate,
  MessageFns,
  PluginDefinition,
  PodSandbox,
} from '../../wire/nri/api.ts';
import type { LatencyFigures } from './latencies.ts';

type Method = (typeof PluginDefinition.methods)[keyof typeof PluginDefinition.methods];
type MessageOf<Codec> = Codec extends MessageFns<infer Message> ? Message : never;

/** What plugins subscribe to, by the name that the protocol's service has for it: RunPodSandbox, … */
export type NriHook = Exclude<Method['name'], 'Configure' | 'Synchronize' | 'Shutdown' | 'StateChange'>;
/** What is asked of it, by the same name. */
export type NriAsked = NriHook | 'Synchronize';
export type RequestOf<H extends NriHook> = MessageOf<Extract<Method, { readonly name: H }>['requestType']>;
export type AnswerOf<H extends NriHook> = MessageOf<Extract<Method, { readonly name: H }>['responseType']>;

/** A connection of a plugin that has registered and told what it wants to hear of. */
export interface NriPlugin {
  /** Of this connection: the plugin has another one when it connects again, and so have two of one name. */
  readonly id: string;
  /** Two digits: plugins are asked in their order. */
  readonly index: string;
  readonly name: string;
  /** Started by us, from the plugin directory. */
  readonly launched: boolean;
  /** null: not known. */
  readonly pid: number | null;
  readonly events: readonly NriHook[];
  /** As the plugin told it, with the request timeout that holds for it; "" when it told none. */
  readonly nriVersion: string;
  readonly requestTimeoutMs: number;
  /** What a request comes to that it gave no answer to: by the configuration, else as the plugin wants it. */
  readonly failurePolicy: NriFailurePolicy;
}

export type NriPluginChange =
  | { readonly kind: 'registered'; readonly plugin: NriPlugin }
  /** Of one that had registered; told once, and nothing is told of it after that. */
  | { readonly kind: 'closed'; readonly pluginId: string; readonly reason: string };

/**
 * closed: it is gone, and whether it acted is not known. timedOut: it missed its deadline, and will be asked again.
 * refused: it answered an error, or the request is larger than any may be. unsubscribed: it was not asked.
 */
export type NriFailureKind = 'closed' | 'timedOut' | 'refused' | 'unsubscribed';

export interface NriFailure {
  readonly ok: false;
  readonly why: NriFailureKind;
  /** Names the plugin and the request. */
  readonly message: string;
  /** From the moment it was asked: what it waited for others is not in it. */
  readonly durationNs: bigint;
}

export type NriAnswer<H extends NriHook> =
  | { readonly ok: true; readonly answer: AnswerOf<H>; readonly durationNs: bigint }
  | NriFailure;

export type NriSynchronized =
  | { readonly ok: true; readonly update: readonly ContainerUpdate[]; readonly durationNs: bigint }
  | NriFailure;

/** What a plugin wants to have changed without having been asked. */
export interface NriUpdatesAsked {
  readonly pluginId: string;
  readonly update: readonly ContainerUpdate[];
  readonly evict: readonly ContainerEviction[];
}

/**
 * Resolves with the updates that failed. A plugin's next ones come when this has settled. What it rejects with (a
 * FailureError has a code) is what the plugin is answered.
 */
export type TakeNriUpdates = (asked: NriUpdatesAsked) => Promise<readonly ContainerUpdate[]>;

export type NriPluginState = 'starting' | 'registered' | 'synchronizing' | 'active' | 'waiting';

/** For `scribe nri`. */
export interface NriPluginStatus {
  /** null: a launched one that is not connected now. */
  readonly id: string | null;
  readonly index: string;
  readonly name: string;
  readonly launched: boolean;
  readonly pid: number | null;
  /** waiting: launched, it has ended, and will be started again. */
  readonly state: NriPluginState;
  readonly events: readonly NriHook[];
  readonly nriVersion: string;
  /** Since 1970; figures are of the time since then. null: it is not connected. */
  readonly registeredNs: bigint | null;
  readonly requests: number;
  /** Requests that it refused, missed the deadline of, or closed upon. */
  readonly failures: number;
  readonly deadlinesMissed: number;
  readonly missesInARow: number;
  /** Of the last 256 answers to each that it has answered. */
  readonly latencies: readonly (LatencyFigures & { readonly asked: NriAsked })[];
  /** The last thing that went wrong; null: nothing. */
  readonly lastFailure: string | null;
}

export interface NriPlugins {
  /**
   * Asks one plugin, once its Synchronize and its earlier requests are through; one that is not being synchronized yet
   * counts as closed. Never rejects.
   */
  readonly ask: <H extends NriHook>(pluginId: string, hook: H, request: RequestOf<H>) => Promise<NriAnswer<H>>;
  /** In chunks that a message holds. The plugin is active from then on; one that fails it is closed. Never rejects. */
  readonly synchronize: (
    pluginId: string,
    pods: readonly PodSandbox[],
    containers: readonly Container[],
  ) => Promise<NriSynchronized>;
  /** Ends the connection of one that can not be asked any more; `reason` is told as why it is gone. */
  readonly dismiss: (pluginId: string, reason: string) => void;
  /** Tells nothing before `start`. */
  readonly changes: Observable<NriPluginChange>;
  /**
   * Launches and listens. Resolves once each launched plugin has registered, or has failed to within the time that it
   * had: those are tried again. Where there can't be a socket, that is a finding.
   */
  readonly start: (takeUpdates: TakeNriUpdates) => Promise<void>;
  readonly status: () => readonly NriPluginStatus[];
  /** Tells the plugins (Shutdown), and ends those that were launched. */
  readonly close: () => Promise<void>;
}
