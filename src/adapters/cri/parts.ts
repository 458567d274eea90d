/**
 * What the CRI services are made from: ways to the engine, the read model, and what other adapters know. Types only:
 * src/daemon/cri-parts.ts puts the parts together, calls.ts makes calls with them.
 */
import type { Container, PodSandbox } from '../../domain/model/state.ts';
import type { Seals } from '../../domain/call/sealing.ts';
import type { AuditedCommand } from '../../domain/model/streams.ts';
import type { NoteRead, ReadModel, SubmitCall } from '../../engine/ports.ts';
import type { StreamingRequest } from '../streaming/types.ts';
import type * as wire from '../../wire/cri/api.ts';
import type { ContainerEvents } from './events.ts';
import type { Lists } from './lists.ts';

export interface CriParts {
  readonly version: string;
  /** Of a request, and of an answer. */
  readonly messageBytesMax: number;
  readonly submit: SubmitCall;
  readonly view: ReadModel;
  readonly lists: Lists;
  readonly events: ContainerEvents;
  readonly noteRead: NoteRead;
  readonly nowNs: () => bigint;
  /** The time that statuses are of: events of later changes are later, and of all earlier ones they know. */
  readonly statusesAtNs: () => bigint;
  readonly monoNs: () => bigint;
  /** Keeps an env value and gives its token; forgets values that nobody used. */
  readonly tokenOf: (value: Uint8Array) => string;
  /**
   * A command as it is to be recorded, by the node's policy. `containerId` as the request has it.
   * @throws {FailureError} InvalidField for a word that is to be sealed and that no program can be given
   */
  readonly audited: (method: 'ExecSync' | 'Exec', containerId: string, cmd: readonly string[]) => AuditedCommand;
  /** Labels and annotations as they are recorded, and answered; what a container runs as it is recorded. */
  readonly seals: Pick<Seals, 'labels' | 'annotations' | 'command'>;
  /** Keeps registry credentials for one pull and gives their token. */
  readonly keepCredentials: (auth: wire.AuthConfig) => string;
  readonly streaming: StreamingDoor;
  /** null when the container has no cgroup any more. */
  readonly statsOf: (container: Container) => Promise<wire.ContainerStats | null>;
  /** Those that have gone meanwhile, or can't be read, are left out. */
  readonly statsOfAll: (containers: readonly Container[]) => Promise<wire.ContainerStats[]>;
  /** What a pod's shim says of its sandbox, for who wants all of it; never rejects, and is bounded in size and time. */
  readonly sandboxDetails: (podSandboxId: string) => Promise<Readonly<Record<string, unknown>>>;
  /** As it is now; pods that have gone meanwhile are left out, and containers of those that stay. */
  readonly podStatsOf: (sandboxes: readonly PodSandbox[]) => Promise<wire.PodSandboxStats[]>;
  readonly podMetricsOf: (sandboxes: readonly PodSandbox[]) => Promise<wire.PodSandboxMetrics[]>;
  /** Why the plugins of the configured network take no pods now; null when they do, or can't tell. */
  readonly networkProblem: () => Promise<string | null>;
  /** The config of the image with this id, as it came from its registry; null: it is not there, or too large to be shown. */
  readonly imageConfigOf: (imageId: string) => Promise<Readonly<Record<string, unknown>> | null>;
  readonly imageFsInfo: () => Promise<wire.ImageFsInfoResponse>;
  /** Runtime features for Status, the default handler under the empty name too. */
  readonly runtimeHandlers: () => readonly wire.RuntimeHandler[];
  /** What verbose Status says of the configuration: no secrets. */
  readonly describeConfig: () => Readonly<Record<string, unknown>>;
}

export interface StreamingDoor {
  readonly newId: () => string;
  /** The address of a session; rejects when too many wait to be used. */
  readonly urlFor: (request: StreamingRequest) => Promise<string>;
}
