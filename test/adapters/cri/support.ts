/**
 * A CRI server on a socket of its own, in front of a read model that the test fills and of whatever takes calls: a
 * function of the test, or a real engine on a journal in memory whose effects all fail.
 */
import { join } from 'node:path';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { createContainerEvents } from '../../../src/adapters/cri/events.ts';
import { createLists } from '../../../src/adapters/cri/lists.ts';
import type { CriParts } from '../../../src/adapters/cri/parts.ts';
import { startCriServer } from '../../../src/adapters/cri/server.ts';
import type { ServiceOptions, ServiceParts } from '../../../src/adapters/cri/service.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { BodyOf, Sequenced } from '../../../src/domain/model/records.ts';
import {
  type Container,
  copyState,
  type Image,
  initialState,
  type NodeState,
  type PodSandbox,
} from '../../../src/domain/model/state.ts';
import { createEngine, type Engine } from '../../../src/engine/engine.ts';
import type { PerformEffects, ReadModel, SubmitCall } from '../../../src/engine/ports.ts';
import { createMemoryJournal, type MemoryJournal } from '../../../src/journal/memory-journal.ts';
import type { ReadRow } from '../../../src/journal/types.ts';
import { criEventsOf } from '../../../src/projections/cri-events.ts';
import { createChanges, type PublishedView, publishedView } from '../../../src/engine/published-view.ts';
import { createView } from '../../../src/projections/view.ts';
import { type CriClient, criClient } from '../../../scripts/lib/cri-client.ts';
import { FACTS } from '../../simulation/facts.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { running } from '../../support/phases.ts';

export const idOf = (digits: string): string => digits.padEnd(64, '0');

export const podSandbox = (id: string, overrides: Partial<PodSandbox> = {}): PodSandbox => ({
  id,
  seq: 1,
  name: `pod-${id}`,
  config: { metadata: { name: `pod-${id.slice(0, 4)}`, uid: 'uid', namespace: 'default' } },
  runtimeHandler: '',
  handler: { name: 'runc', runtimeType: 'io.containerd.runc.v2', binaryName: 'runc', systemdCgroup: false },
  sandboxer: 'pause',
  image: null,
  rootfs: [],
  network: null,
  createdAtNs: '1000',
  goal: 'run',
  phase: 'ready',
  stopped: false,
  steps: { files: 'done', netns: 'done', network: 'done', shim: 'done', task: 'done' },
  ips: ['10.1.2.3', 'fd00::3'],
  networkResult: null,
  shim: null,
  shimContact: 'connected',
  shimSilences: 0,
  task: { pid: 41, startTicks: '7' },
  taskExit: null,
  kill: 'none',
  claimed: true,
  failure: null,
  owedFailure: null,
  undoFailures: 0,
  ...overrides,
});

/** A running container. */
export const container = (id: string, podSandboxId: string, overrides: Partial<Container> = {}): Container => ({
  id,
  seq: 2,
  name: `container-${id}`,
  podSandboxId,
  config: { metadata: { name: `c-${id.slice(0, 4)}` }, image: { image: 'busybox' } },
  imageId: 'sha256:i1',
  imageConfig: {},
  chainIds: [],
  createdAtNs: '2000',
  goal: 'run',
  phase: running(),
  files: 'done',
  facts: null,
  rootfs: [],
  failure: null,
  owedFailure: null,
  undoFailures: 0,
  ...overrides,
});

export const image = (id: string, overrides: Partial<Image> = {}): Image => ({
  id,
  seq: 3,
  content: {
    id,
    manifestDigest: 'sha256:m1',
    repoTags: ['docker.io/library/busybox:latest'],
    repoDigests: ['docker.io/library/busybox@sha256:m1'],
    sizeBytes: 1234,
    config: { user: '1000:1000' },
    layers: [],
    blobs: [],
  },
  pulledAtNs: '500',
  removing: false,
  undoFailures: 0,
  ...overrides,
});

export interface TestModel extends ReadModel {
  readonly state: NodeState;
  /** Puts objects in, as one durable change that `records` told of. */
  readonly put: (
    objects: { sandboxes?: readonly PodSandbox[]; containers?: readonly Container[]; images?: readonly Image[] },
    records?: readonly Sequenced[],
  ) => void;
  /** Takes objects out by id. */
  readonly remove: (ids: readonly string[], records?: readonly Sequenced[]) => void;
}

/** A read model that holds what the test puts into it. */
export const testModel = (): TestModel => {
  const state = initialState();
  const { changes, recordsOf, tell } = createChanges();
  let version = 0;
  const changed = (records: readonly Sequenced[]): void => {
    version += 1;
    tell(records);
  };
  return {
    state,
    versions: () => ({ sandboxes: version, containers: version, images: version }),
    changes,
    recordsOf,
    put: ({ sandboxes = [], containers = [], images = [] }, records = []) => {
      for (const one of sandboxes) state.sandboxes.set(one.id, one);
      for (const one of containers) state.containers.set(one.id, one);
      for (const one of images) state.images.set(one.id, one);
      changed(records);
    },
    remove: (ids, records = []) => {
      for (const id of ids) {
        state.sandboxes.delete(id);
        state.containers.delete(id);
        state.images.delete(id);
      }
      changed(records);
    },
  };
};

export interface TestServer {
  readonly socket: string;
  readonly cri: CriClient;
  readonly parts: CriParts;
  /** Rows of answered reads, in order. */
  readonly reads: readonly ReadRow[];
  /** Exceptions that were no FailureError. */
  readonly bugs: readonly unknown[];
  readonly drain: (timeoutMs: number) => Promise<number>;
}

export interface TestServerOptions {
  readonly view?: ReadModel;
  readonly submit?: SubmitCall;
  readonly parts?: Partial<CriParts>;
  readonly services?: (parts: CriParts, options: ServiceOptions) => readonly ServiceParts[];
}

const NOTHING: SubmitCall = () => Promise.resolve({ outcome: { ok: true, value: {} }, attachment: null });

/** Parts that know nothing but what they are given; reads are noted in `reads`. */
export const partsOf = (view: ReadModel, reads: ReadRow[], overrides: Partial<CriParts> = {}): CriParts => ({
  version: '0.0.0-test',
  messageBytesMax: 16 * 1024 * 1024,
  submit: NOTHING,
  view,
  lists: createLists(view),
  events: createContainerEvents({
    view,
    eventsOf: criEventsOf,
    nowNs: () => BigInt(Date.now()) * 1_000_000n,
    backlog: Promise.resolve([]),
    cursor: { deliveredSeq: () => 0, deliver: () => undefined },
    onPassedOver: () => undefined,
  }),
  noteRead: (row) => void reads.push(row),
  nowNs: () => 1_000_000_000n,
  statusesAtNs: () => 1_000_000_000n,
  monoNs: process.hrtime.bigint,
  tokenOf: (value) => `token-${value.length}`,
  audited: (_method, _containerId, cmd) => ({ cmd }),
  seals: { labels: (entries) => entries, annotations: (entries) => entries, command: (config) => config },
  keepCredentials: () => 'credentials',
  sandboxDetails: () => Promise.resolve({}),
  streaming: { newId: () => 'session', urlFor: ({ kind }) => Promise.resolve(`http://127.0.0.1/${kind}/token`) },
  statsOf: () => Promise.resolve(null),
  statsOfAll: () => Promise.resolve([]),
  podStatsOf: () => Promise.resolve([]),
  podMetricsOf: () => Promise.resolve([]),
  imageConfigOf: () => Promise.resolve(null),
  networkProblem: () => Promise.resolve(null),
  imageFsInfo: () => Promise.resolve({ imageFilesystems: [], containerFilesystems: [] }),
  runtimeHandlers: () => [],
  describeConfig: () => ({}),
  ...overrides,
});

/** Starts a server; it and its client are gone when the owner ends. */
export const startServer = async (owner: Owner, options: TestServerOptions = {}): Promise<TestServer> => {
  const reads: ReadRow[] = [];
  const bugs: unknown[] = [];
  const parts = partsOf(options.view ?? testModel(), reads, { submit: options.submit ?? NOTHING, ...options.parts });
  const socket = join(await tempDir(owner), 's.sock');
  const server = await startCriServer({
    socketPath: socket,
    socketMode: 0o660,
    socketGid: null,
    parts,
    services: (serviceOptions) => options.services?.(parts, serviceOptions) ?? [],
    onBug: (_rpc, error) => void bugs.push(error),
  });
  onCleanup(owner, () => server.close());
  const cri = criClient(socket);
  onCleanup(owner, () => cri.close());
  return { socket, cri, parts, reads, bugs, drain: server.drain };
};

export interface TestEngine {
  readonly engine: Engine;
  readonly journal: MemoryJournal;
  readonly view: PublishedView;
  /** Bodies of the durable records of a type, in order. */
  readonly recorded: <T extends 'call.received' | 'call.completed' | 'call.detached'>(type: T) => BodyOf<T>[];
}

const fails = (): Promise<never> => Promise.reject(new FailureError('HostFailed', 'This test has no host.'));

/** Every effect fails, but those the test performs itself. */
const performing = (own: Partial<PerformEffects>): PerformEffects =>
  new Proxy(own, { get: (target, kind) => (Reflect.get(target, kind) as unknown) ?? fails }) as PerformEffects;

/** A real engine on a journal in memory, started. */
export const startEngine = async (owner: Owner, own: Partial<PerformEffects> = {}): Promise<TestEngine> => {
  const journal = createMemoryJournal();
  const state = initialState();
  const view = publishedView(createView(copyState(state), 0));
  let ids = 0;
  const engine = createEngine({
    journal,
    state,
    perform: performing(own),
    clock: {
      nowNs: () => BigInt(Date.now()) * 1_000_000n,
      monoNs: process.hrtime.bigint,
      at: (dueAtNs, fire) => {
        const timer = setTimeout(fire, Number(dueAtNs / 1_000_000n) - Date.now());
        return () => clearTimeout(timer);
      },
    },
    ids: { hex64: () => idOf(String((ids += 1))), uuid: () => String((ids += 1)) },
    boot: 'boot',
    publish: view.publish,
    published: view.state,
    report: () => undefined,
    diskIsFull: () => false,
    fatal: (error) => {
      throw error;
    },
  });
  await engine.start({ facts: FACTS, rebooted: false, deadTasks: [], crash: null });
  onCleanup(owner, () => engine.stop('the test is over'));
  return {
    engine,
    journal,
    view,
    recorded: <T extends 'call.received' | 'call.completed' | 'call.detached'>(type: T) =>
      journal.contents.rows.flatMap(({ record }) =>
        record?.type === type ? [JSON.parse(record.body) as BodyOf<T>] : [],
      ),
  };
};

/** How a call ended. */
export interface Answer {
  readonly code: number;
  readonly details: string;
  readonly bytes: Uint8Array;
}

export interface RawClient {
  /** A unary call with these bytes as its request. Never rejects: a failure is an answer too. */
  readonly call: (path: string, request?: Uint8Array, timeoutMs?: number) => Promise<Answer>;
  readonly grpc: Client;
}

const same = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

/** A client that knows no service; closed when the owner ends. */
export const rawClient = (owner: Owner, socket: string, sendBytesMax = -1): RawClient => {
  const grpc = new Client(`unix:${socket}`, credentials.createInsecure(), {
    'grpc.max_send_message_length': sendBytesMax,
    'grpc.max_receive_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
  });
  onCleanup(owner, () => grpc.close());
  return {
    grpc,
    call: (path, request = new Uint8Array(), timeoutMs = 10_000) =>
      new Promise((resolve) => {
        const finish = (error: ServiceError | null, bytes?: Buffer): void =>
          resolve({ code: error?.code ?? 0, details: error?.details ?? '', bytes: bytes ?? new Uint8Array() });
        const options = { deadline: Date.now() + timeoutMs };
        grpc.makeUnaryRequest<Uint8Array, Buffer>(path, same, same, request, new Metadata(), options, finish);
      }),
  };
};

interface Codec<T> {
  readonly encode: (message: T) => { readonly finish: () => Uint8Array };
  readonly decode: (bytes: Uint8Array) => T;
}

interface UnaryMethod<Request, Response> {
  readonly name: string;
  readonly requestType: Codec<Request>;
  readonly responseType: Codec<Response>;
}

/** A unary call by its generated definition; rejects with the code and details of a failure. */
export const ask = async <Request, Response>(
  client: RawClient,
  service: string,
  { name, requestType, responseType }: UnaryMethod<Request, Response>,
  request: Request,
): Promise<Response> => {
  const { code, details, bytes } = await client.call(`/${service}/${name}`, requestType.encode(request).finish());
  if (code !== 0) throw Object.assign(new Error(details), { code, details });
  return responseType.decode(bytes);
};
