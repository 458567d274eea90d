/**
 * The process manager of images: pulls that wait for a deletion to end, and the content of removed images, which goes
 * once nothing needs it. What of it a pull under way may have found there stays, and is collected where nobody comes to
 * need it.
 *
 *   pull ──> pulled ──(RemoveImage)──> removing ──(content deleted)──> removed
 *              │  ^                       ^
 *   SyncImage  └──┘                       │
 *              └──(not enough is left)────┘
 *
 * A pull is answered when the kernel has the image. That all of it is on the disk is an effect of its own, asked for right
 * after and again after each start until it has ended: of what the end of the node takes before, nothing is believed.
 */
import { refused, succeeded } from '../model/result.ts';
import { openEffectsOn } from '../deciding/open-effects.ts';
import type { Failure } from '../model/errors.ts';
import { isDoubted } from '../model/journal-doubt.ts';
import { imageIdsOf, imageIdsOfPod } from './mounted.ts';
import { findImage } from './names.ts';
import type { ImageContent } from '../model/image-content.ts';
import { imageStream, type Intent, sandboxStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { Image, NodeState, OpenCall } from '../model/state.ts';
import {
  afterMs,
  answer,
  emit,
  ensureTimer,
  request,
  requestFor,
  retryDelayMs,
  type Turn,
  wake,
} from '../deciding/turn.ts';

/** What pulls and loads under way are told apart by: the references and the uploads. */
const fetchesUnderWay = ({ effects }: NodeState): readonly string[] => {
  const names = [...effects.values()].flatMap(({ intent }) => {
    if (intent.kind === 'PullImage') return [intent.reference];
    return intent.kind === 'LoadImages' ? [intent.upload] : [];
  });
  return [...new Set(names)];
};

const isDeleting = ({ effects }: NodeState): boolean =>
  effects.values().some(({ intent }) => intent.kind === 'DeleteImageContent');

/** Starts a pull or load unless content is being deleted; then it starts when that ends. */
export function startFetch(turn: Turn, call: OpenCall): void {
  const intent = fetchIntent(turn.state, call);
  if (intent === null || isDeleting(turn.state)) return;
  requestFor(turn, call, intent);
}

function fetchIntent(state: NodeState, { request: asked }: OpenCall): Intent | null {
  switch (asked.method) {
    case 'PullImage':
      return {
        kind: 'PullImage',
        reference: asked.image,
        credentials: asked.credentials,
        ...(asked.runtimeHandler !== undefined && { runtimeHandler: asked.runtimeHandler }),
      };
    case 'LoadImages':
      return { kind: 'LoadImages', upload: asked.newId };
    case 'RunPodSandbox':
    case 'RestorePod': {
      const reference = state.facts?.sandboxImage ?? null;
      if (reference === null || state.sandboxes.has(asked.newId) || findImage(state, reference) !== undefined)
        return null;
      return { kind: 'PullImage', reference, credentials: null };
    }
    default:
      return null;
  }
}

/** The fetch that other calls for the same thing have joined, if it is under way or waiting. */
export function fetchFor(state: NodeState, target: string, except: number): OpenCall | undefined {
  for (const call of state.calls.values()) if (call.target === target && call.seq !== except) return call;
  return undefined;
}

/** What a pull or load came to. */
export interface Fetched {
  readonly images: readonly ImageContent[];
  readonly unsynced: true | undefined;
  readonly failure: Failure | undefined;
}

/** Creations that waited for a deletion before their sandbox image could be pulled, which somebody else has pulled since. */
const waitingInVain = (state: NodeState): OpenCall[] =>
  [...state.calls.values()].filter(
    (call) =>
      (call.request.method === 'RunPodSandbox' || call.request.method === 'RestorePod') &&
      call.target === sandboxStream(call.request.newId) &&
      !state.sandboxes.has(call.request.newId) &&
      openEffectsOn(state, call.stream).length === 0 &&
      fetchIntent(state, call) === null,
  );

/** `again` takes up a call that was waiting for the sandbox image. */
export function afterFetch(
  turn: Turn,
  stream: string,
  { images, unsynced, failure }: Fetched,
  again: (call: OpenCall, failure: Failure | undefined) => void,
): void {
  for (const image of images) storeImage(turn, image, unsynced);
  const fetcher = [...turn.state.calls.values()].find((call) => call.stream === stream);
  if (fetcher?.request.method === 'RunPodSandbox' || fetcher?.request.method === 'RestorePod') again(fetcher, failure);
  else if (fetcher !== undefined) {
    const imageRefs = images.map(({ id }) => id);
    answer(
      turn,
      fetcher.target,
      ['PullImage', 'LoadImages'],
      failure === undefined ? succeeded({ imageRefs }) : refused(failure),
    );
  }
  for (const call of waitingInVain(turn.state)) again(call, undefined);
  for (const image of turn.state.images.values()) if (image.removing) wake(turn, imageStream(image.id));
}

function storeImage(turn: Turn, content: ImageContent, unsynced: true | undefined): void {
  // A tag names one image: it moves here from whichever had it.
  for (const other of turn.state.images.values()) {
    if (other.id === content.id) continue;
    const moved = other.content.repoTags.filter((tag) => content.repoTags.includes(tag));
    if (moved.length > 0) emit(turn, imageStream(other.id), { type: 'image.untagged', body: { repoTags: moved } });
  }
  const stream = imageStream(content.id);
  emit(turn, stream, { type: 'image.pulled', body: { image: content, ...(unsynced && { unsynced }) } });
  if (unsynced) wake(turn, stream);
}

export function advanceImage(turn: Turn, imageId: string): void {
  const image = turn.state.images.get(imageId);
  const stream = imageStream(imageId);
  if (image === undefined || openEffectsOn(turn.state, stream).length > 0) return;
  if (!image.removing) {
    if (image.unsynced !== undefined) request(turn, stream, { kind: 'SyncImage' });
    return;
  }
  const fetching = fetchesUnderWay(turn.state);
  if (fetching.length > 0 && rulesOf(turn.state) < 12) return;
  if ([...turn.state.containers.values()].some((container) => imageIdsOf(container).includes(imageId))) return;
  if ([...turn.state.sandboxes.values()].some((sandbox) => imageIdsOfPod(sandbox).includes(imageId))) return;
  // An image that the journal does not know may need some of it.
  if (isDoubted(turn.state)) return;
  const { blobs, chainIds } = garbageOf(turn.state, image);
  request(turn, stream, { kind: 'DeleteImageContent', blobs, chainIds, ...(fetching.length > 0 && { fetching }) });
}

/** Nothing can stand on it any more. Should a pull under way bring it back, the deletions know of that pull. */
const isGoing = (state: NodeState, { id, removing, pulledAgain }: Image): boolean =>
  removing &&
  pulledAgain === undefined &&
  openEffectsOn(state, imageStream(id)).some(({ intent }) => intent.kind === 'DeleteImageContent');

/** What of the image no other image needs. Of two that go at once neither leaves to the other what only they share. */
function garbageOf(state: NodeState, image: Image): { blobs: string[]; chainIds: string[] } {
  const sinceRules12 = rulesOf(state) >= 12;
  const others = [...state.images.values()].filter(
    (other) => other.id !== image.id && !(sinceRules12 && isGoing(state, other)),
  );
  const blobs = new Set(others.flatMap(({ content }) => content.blobs));
  const chains = new Set(others.flatMap(({ content }) => content.layers.map(({ chainId }) => chainId)));
  return {
    blobs: image.content.blobs.filter((digest) => !blobs.has(digest)),
    chainIds: [...new Set(image.content.layers.map(({ chainId }) => chainId))].filter(
      (chainId) => !chains.has(chainId),
    ),
  };
}

export function afterDelete(turn: Turn, imageId: string, failure: Failure | undefined): void {
  const image = turn.state.images.get(imageId);
  const stream = imageStream(imageId);
  // What was pulled meanwhile, and removed once more, goes by a deletion of its own.
  if (image !== undefined && (!image.removing || (image.pulledAgain && failure === undefined))) wake(turn, stream);
  else if (image !== undefined) {
    if (failure === undefined) emit(turn, stream, { type: 'image.removed', body: {} });
    else ensureTimer(turn, stream, 'retry', afterMs(turn, retryDelayMs(image.undoFailures)));
  }
  startWaitingFetches(turn);
  for (const other of turn.state.images.values()) if (other.removing) wake(turn, imageStream(other.id));
}

/** An image of which not enough is left is none: whoever needs it pulls it again. */
export function afterSync(turn: Turn, imageId: string, failure: Failure | undefined): void {
  const image = turn.state.images.get(imageId);
  if (image === undefined) return;
  const stream = imageStream(imageId);
  const isLost = failure?.reason === 'ImageInvalid' && !isDoubted(turn.state);
  if (isLost && !image.removing) emit(turn, stream, { type: 'image.removing', body: {} });
  if (failure === undefined || isLost || image.removing) return wake(turn, stream);
  ensureTimer(turn, stream, 'retry', afterMs(turn, retryDelayMs(image.undoFailures)));
}

/** Calls that wait for content to be deleted before anything is fetched for them. */
export const waitingForDeletion = (state: NodeState): OpenCall[] =>
  [...state.calls.values()].filter(
    (call) => fetchIntent(state, call) !== null && openEffectsOn(state, call.stream).length === 0,
  );

function startWaitingFetches(turn: Turn): void {
  const started = new Set<string>();
  for (const call of [...turn.state.calls.values()]) {
    if (fetchIntent(turn.state, call) === null || started.has(call.target)) continue;
    started.add(call.target);
    const underWay = [...turn.state.calls.values()].some(
      (other) => other.target === call.target && openEffectsOn(turn.state, other.stream).length > 0,
    );
    if (!underWay) startFetch(turn, call);
  }
}
