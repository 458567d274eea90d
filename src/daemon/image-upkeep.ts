/**
 * Keeps the image store to what the journal knows of: what a crash or a failed pull left is collected, once before
 * anything is pulled and from time to time after; and has its content checked. Says what is needed and when, and tells
 * what was found; the images adapter does it.
 */
import type { ImagesAdapter } from '../adapters/images/adapter.ts';
import type { DamagedContent } from '../domain/model/notes.ts';
import type { Image, NodeState } from '../domain/model/state.ts';
import type { Observe } from '../engine/ports.ts';
import { timerMs } from '../platform/rpc/timeout.ts';

const COLLECT_EVERY_MS = 3_600_000;
/** The layers of a pull that failed are there for the next attempt, which a kubelet makes within minutes. */
const UNKNOWN_AGE_MS = 3_600_000;

type StoredContent = Parameters<ImagesAdapter['collectUnknown']>[0];

export interface ImageUpkeepOptions {
  readonly images: Pick<ImagesAdapter, 'collectUnknown' | 'collectLeftovers' | 'checkContent' | 'listContent'>;
  /** null: content is not checked. */
  readonly checkIntervalMs: number | null;
  readonly checkBytesPerSecond: number;
  /** As it is now; must know of every image by the time its fetch has long ended. */
  readonly state: () => Pick<NodeState, 'images' | 'containers'>;
  readonly log: { readonly info: (fields: object, message: string) => void };
  readonly observe: Observe;
  /** Told, in a sentence, what nobody may miss. */
  readonly report: (message: string) => void;
}

export interface ImageUpkeep {
  /** The daemon serves: what takes long may begin. */
  readonly served: () => void;
  readonly close: () => void;
}

/** Images, also those on their way out, and the layers that containers were made from. */
export function neededContent({ images, containers }: Pick<NodeState, 'images' | 'containers'>): StoredContent {
  const contents = [...images.values()].map(({ content }) => content);
  const ofContainers = [...containers.values()].flatMap(({ chainIds, mountedImages = [] }) => [
    ...chainIds,
    ...mountedImages.flatMap((mounted) => mounted.chainIds),
  ]);
  return {
    blobs: contents.flatMap(({ blobs }) => blobs),
    chainIds: [...ofContainers, ...contents.flatMap(({ layers }) => layers.map(({ chainId }) => chainId))],
  };
}

type Images = Pick<NodeState, 'images'>;

const isPartOf = ({ content }: Image, { kind, digest }: DamagedContent): boolean =>
  kind === 'blob' ? content.blobs.includes(digest) : content.layers.some(({ chainId }) => chainId === digest);

/** The images that it is part of, but for those on their way out. */
const imagesWith = ({ images }: Images, damaged: DamagedContent): readonly Image[] =>
  [...images.values()].filter((image) => !image.removing && isPartOf(image, damaged));

const namesOf = (images: readonly Image[]): string =>
  images.map(({ id, content }) => content.repoTags[0] ?? content.repoDigests[0] ?? id).join(', ') || 'no image';

/** What images need and the store does not have. A layer may have the digest of a blob, when that is not compressed. */
function missingIn(images: readonly Image[], stored: StoredContent): DamagedContent[] {
  const missing = (
    kind: DamagedContent['kind'],
    needed: readonly string[],
    there: readonly string[],
  ): DamagedContent[] => {
    const have = new Set(there);
    const lacking = [...new Set(needed)].filter((digest) => !have.has(digest));
    return lacking.map((digest) => ({ kind, digest, problem: 'missing' }));
  };
  const contents = images.map(({ content }) => content);
  const chainIds = contents.flatMap(({ layers }) => layers.map(({ chainId }) => chainId));
  return [
    ...missing(
      'blob',
      contents.flatMap(({ blobs }) => blobs),
      stored.blobs,
    ),
    ...missing('layer', chainIds, stored.chainIds),
  ];
}

/**
 * Begins at once with what the last life of the daemon left: to be called before anything can be pulled. Nothing is
 * collected while `keepsAll`, for a journal that may not know what there is.
 */
export function startImageUpkeep(options: ImageUpkeepOptions, keepsAll: () => boolean): ImageUpkeep {
  const { images, state, log, observe, report, checkIntervalMs, checkBytesPerSecond } = options;
  const timers: NodeJS.Timeout[] = [];
  const closed = new AbortController();
  let checking = false;

  function every(intervalMs: number, work: () => void): void {
    timers.push(setInterval(work, timerMs(intervalMs)).unref());
  }

  /** Every image that it is part of gets a record: `scribe history --image` shows it. */
  async function tell(damaged: DamagedContent): Promise<void> {
    const having = imagesWith(state(), damaged);
    // What went while it was looked at is not missed.
    if (having.length === 0 && damaged.problem === 'missing') return;
    const { kind, digest, problem } = damaged;
    const found = problem === 'altered' ? 'was damaged on the disk and is removed' : 'is not whole on the disk';
    report(`The ${kind} ${digest} of ${namesOf(having)} ${found}; pull the image again to get it back`);
    for (const { id } of having) await observe({ kind: 'ContentDamaged', imageId: id, damaged });
  }

  /** One check at a time, however long it takes. */
  async function check(): Promise<void> {
    if (checking) return;
    checking = true;
    try {
      // An image that is pulled while the store is looked at is not missed in it.
      const before = [...state().images.values()];
      const altered = await images.checkContent(checkBytesPerSecond, closed.signal);
      for (const digest of altered) await tell({ kind: 'blob', digest, problem: 'altered' });
      for (const missing of missingIn(before, await images.listContent()))
        if (missing.kind === 'layer' || !altered.includes(missing.digest)) await tell(missing);
    } catch (error) {
      if (!closed.signal.aborted) report(`The content of images could not be checked: ${String(error)}`);
    } finally {
      checking = false;
    }
  }

  async function inBackground(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      report(`What earlier pulls left in the image store could not be removed: ${String(error)}`);
    }
  }

  async function collect(ageMs: number): Promise<void> {
    if (keepsAll()) return;
    const collected = await images.collectUnknown(neededContent(state()), ageMs);
    if (collected === null || collected.blobs.length + collected.layers.length === 0) return;
    const counts = { blobs: collected.blobs.length, layers: collected.layers.length };
    log.info(counts, 'content that no image needs was collected');
    await observe({ kind: 'NodeNoted', note: { type: 'content.collected', body: collected } });
  }

  const collected = inBackground(() => collect(0));

  return {
    served() {
      void inBackground(async () => {
        await collected;
        await images.collectLeftovers();
      });
      if (checkIntervalMs !== null) every(checkIntervalMs, () => void check());
      every(COLLECT_EVERY_MS, () => {
        void inBackground(async () => {
          await collect(UNKNOWN_AGE_MS);
          await images.collectLeftovers();
        });
      });
    },
    close() {
      closed.abort();
      for (const timer of timers) clearInterval(timer);
    },
  };
}
