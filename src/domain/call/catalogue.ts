/**
 * The calls that change something, a row each: all that is known of a call beside its words (model/records.ts) and its
 * decision (decisions.ts). Everybody who has to tell calls apart asks here: the engine, decisions, histories, which need not
 * load what decides. A call without a row only reads: adapters answer it from the published view. A method without a row is
 * a compile error, and so is a row that says nothing of ids in its request.
 */
import { formatImageReference, parseImageReference } from '../image/reference.ts';
import type { Failure } from '../model/errors.ts';
import {
  type CallMethod,
  type CallRequest,
  containerStream,
  NODE_STREAM,
  type RequestOf,
  sandboxStream,
} from '../model/records.ts';
import type { NodeState } from '../model/state.ts';
import type { CallDraft, DraftOf } from './draft.ts';
import { wholeId } from './ids.ts';

/** Objects whose ids a request may give by their beginning. */
type KnownObjects = Pick<NodeState, 'sandboxes' | 'containers'>;
/** Gives a new id with every call. */
type NewId = () => string;

interface Row<R extends CallRequest> {
  /** Streams of the objects that it names: to whose histories it belongs. */
  readonly subjects: (request: R) => readonly string[];
  /** What it waits for, as one string: calls for the same are answered together. '' when it is answered at once. */
  readonly target: (request: R) => string;
  /** What makes room or ends something is served also then (C7). */
  readonly onFullDisk: 'served' | 'refused';
  /** Stream of the object whose id its answer gives; absent: an answer gives none. */
  readonly made?: (id: string) => string;
  /** It runs nothing: the session that it allows, if a client begins one, is a call of its own. */
  readonly isAllowing?: true;
}

/** Ids of what it makes; those that a draft has already stay. */
interface NewIds<R> {
  readonly newIds: (draft: DraftOf<R>, next: NewId) => Partial<R>;
}

/** With ids whole, and names of images in their normal form. What does not resolve stays, for the decision to refuse. */
interface Whole<R> {
  readonly whole: (known: KnownObjects, request: R) => R;
}

type RowOf<R extends CallRequest> = Row<R> &
  (R extends { readonly newId: string } ? NewIds<R> : unknown) &
  (R extends { readonly podSandboxId: string } | { readonly containerId: string } | { readonly image: string }
    ? Whole<R>
    : unknown);

type Catalogue = { readonly [M in CallMethod]: RowOf<RequestOf<M>> };

interface OfPod {
  readonly podSandboxId: string;
}
interface OfContainer {
  readonly containerId: string;
}
interface WithNewId {
  readonly newId: string;
}

const pod = ({ podSandboxId }: OfPod): string => sandboxStream(podSandboxId);
const container = ({ containerId }: OfContainer): string => containerStream(containerId);
const nothing = (): string => '';

const ofPod = {
  subjects: (request: OfPod) => [pod(request)],
  whole: <R extends OfPod>({ sandboxes }: KnownObjects, request: R): R => ({
    ...request,
    podSandboxId: wholeId(sandboxes, request.podSandboxId),
  }),
};
const ofContainer = {
  subjects: (request: OfContainer) => [container(request)],
  whole: <R extends OfContainer>({ containers }: KnownObjects, request: R): R => ({
    ...request,
    containerId: wholeId(containers, request.containerId),
  }),
};
const ofNode = { subjects: () => [NODE_STREAM], target: nothing };
const ofNothing = { subjects: () => [], target: nothing };

const withNewId = {
  newIds: ({ newId }: Partial<WithNewId>, next: NewId): WithNewId => ({ newId: newId ?? next() }),
};
/** It waits for the end of what has the id: an exec, a session, a load. */
const until = (what: string) => ({ ...withNewId, target: ({ newId }: WithNewId) => `${what}/${newId}` });
/** It waits for the object that it makes, or joins another call that makes it. */
const making = (stream: (id: string) => string) => ({
  ...withNewId,
  target: ({ newId }: WithNewId) => stream(newId),
  made: stream,
});

const allowing = { ...withNewId, target: nothing, isAllowing: true } as const;

const catalogue: Catalogue = {
  RunPodSandbox: {
    ...making(sandboxStream),
    subjects: ({ newId }) => [sandboxStream(newId)],
    onFullDisk: 'refused',
  },
  RestorePod: {
    ...making(sandboxStream),
    newIds: ({ newId, newContainerIds, containerConfigs }, next) => ({
      newId: newId ?? next(),
      newContainerIds: newContainerIds ?? containerConfigs.map(next),
    }),
    subjects: ({ newId, newContainerIds }) => [sandboxStream(newId), ...newContainerIds.map(containerStream)],
    onFullDisk: 'refused',
  },
  StopPodSandbox: { ...ofPod, target: pod, onFullDisk: 'served' },
  RemovePodSandbox: { ...ofPod, target: pod, onFullDisk: 'served' },
  UpdatePodSandboxResources: {
    ...ofPod,
    target: nothing,
    onFullDisk: 'refused',
  },
  CheckpointPod: {
    ...ofPod,
    whole: (known, request) => ({
      ...ofPod.whole(known, request),
      containerIds: request.containerIds.map((id) => wholeId(known.containers, id)),
    }),
    target: pod,
    onFullDisk: 'refused',
  },
  PortForward: { ...ofPod, ...allowing, onFullDisk: 'refused' },
  PortForwardSession: { ...ofPod, ...until('session'), onFullDisk: 'refused' },

  CreateContainer: {
    ...ofPod,
    ...making(containerStream),
    subjects: (request) => [containerStream(request.newId), pod(request)],
    onFullDisk: 'refused',
  },
  StartContainer: { ...ofContainer, target: container, onFullDisk: 'refused' },
  StopContainer: { ...ofContainer, target: container, onFullDisk: 'served' },
  RemoveContainer: { ...ofContainer, target: container, onFullDisk: 'served' },
  ReopenContainerLog: { ...ofContainer, target: container, onFullDisk: 'refused' },
  UpdateContainerResources: {
    ...ofContainer,
    target: container,
    onFullDisk: 'refused',
  },
  CheckpointContainer: { ...ofContainer, target: container, onFullDisk: 'refused' },
  ExecSync: { ...ofContainer, ...until('exec'), onFullDisk: 'refused' },
  Exec: { ...ofContainer, ...allowing, onFullDisk: 'refused' },
  Attach: { ...ofContainer, ...allowing, onFullDisk: 'refused' },
  ExecSession: { ...ofContainer, ...until('session'), onFullDisk: 'refused' },
  AttachSession: { ...ofContainer, ...until('session'), onFullDisk: 'refused' },

  PullImage: {
    subjects: () => [],
    whole: (_, request) => {
      const parsed = parseImageReference(request.image);
      return parsed.ok ? { ...request, image: formatImageReference(parsed.value) } : request;
    },
    target: ({ image, credentials }) => `pull/${image}${credentials === null ? '' : `#${credentials}`}`,
    onFullDisk: 'refused',
  },
  LoadImages: { subjects: () => [], ...until('load'), onFullDisk: 'refused' },
  // An id of an image may be given by its beginning too: the decision finds it.
  RemoveImage: { ...ofNothing, whole: (_, request) => request, onFullDisk: 'served' },

  UpdateRuntimeConfig: { ...ofNode, onFullDisk: 'refused' },
  SetLogLevel: { ...ofNode, onFullDisk: 'refused' },
  AcknowledgeJournal: { ...ofNode, onFullDisk: 'refused' },

  ReloadConfig: {
    ...ofNode,
    onFullDisk: 'refused',
  },
  ClearStrays: { ...ofNode, onFullDisk: 'refused' },
  ReadJournal: { ...ofNode, onFullDisk: 'refused' },
  Read: {
    ...ofNothing,
    subjects: ({ about }) => (about === undefined ? [] : [about]),
    onFullDisk: 'refused',
  },
  Refused: {
    ...ofNothing,
    onFullDisk: 'refused',
  },
  Unimplemented: {
    ...ofNothing,
    onFullDisk: 'refused',
  },
};

/** A row is given nothing but requests of its own method: all functions below take it by the method of what they hand it. */
type AnyRow = Row<CallRequest> & Partial<NewIds<CallRequest> & Whole<CallRequest>>;
const rowOf = (method: CallMethod): AnyRow => catalogue[method] as unknown as AnyRow;

/** The request of a draft as it is written down, so that all that follows compares exact strings. */
export function requestOf(known: KnownObjects, draft: CallDraft, next: NewId): CallRequest {
  const { newIds, whole } = rowOf(draft.method);
  // With its new ids a draft is a request.
  const request = { ...draft, ...newIds?.(draft, next) } as CallRequest;
  return whole?.(known, request) ?? request;
}

export const subjectsOf = (request: CallRequest): readonly string[] => rowOf(request.method).subjects(request);
export const targetOf = (request: CallRequest): string => rowOf(request.method).target(request);

/** Stream of the object whose id an answer to this method gives. */
export const madeBy = (method: CallMethod, id: string): string | null => rowOf(method).made?.(id) ?? null;

/** Its answer allows a session, and says nothing of what the session does. */
export const isAllowing = (method: CallMethod): boolean => rowOf(method).isAllowing === true;

/** Why a call is refused while the disk is full. */
export const fullDiskFailure = ({ method }: CallDraft): Failure | null =>
  rowOf(method).onFullDisk === 'served' ? null : DISK_FULL;

const DISK_FULL: Failure = {
  reason: 'DiskFull',
  message: 'The file system of the root directory is too full for anything but stopping and removing; free some space.',
};

/** They stand for others, which their requests name. */
const STAND_INS: ReadonlySet<string> = new Set<CallMethod>(['Read', 'Refused', 'Unimplemented']);

/** Methods of calls that are recorded whole, as histories name them. */
export const callMethods: readonly string[] = Object.keys(catalogue).filter((method) => !STAND_INS.has(method));
