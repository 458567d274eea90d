/**
 * Keeps the image store to what the journal knows of: what a crash or a failed pull left is collected, once before
 * anything is pulled and from time to time after; and has its content checked. Says what is needed and when, and tells
 * what was found; the images adapter does it.
 */
import type { ImagesAdapter } from '../adapters/images/adapter.ts';
import type { NodeState } from '../domain/state.ts';

const COLLECT_EVERY_MS = 3_600_000;
/** The longest a timer runs; with more it would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** The layers of a pull that failed are there for the next attempt, which a kubelet makes within minutes. */
const UNKNOWN_AGE_MS = 3_600_000;

type StoredContent = Parameters<ImagesAdapter['collectUnknown']>[0];

export interface ImageUpkeepOptions {
  readonly images: Pick<ImagesAdapter, 'collectUnknown' | 'collectLeftovers' | 'checkContent'>;
  /** null: content is not checked. */
  readonly checkIntervalMs: number | null;
  readonly checkBytesPerSecond: number;
  /** As it is now; must know of every image by the time its fetch has long ended. */
  readonly state: () => Pick<NodeState, 'images' | 'containers'>;
  readonly log: { readonly info: (fields: object, message: string) => void };
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

/** For a sentence: the images that a blob is part of. */
function namesWith({ images }: Pick<NodeState, 'images'>, digest: string): string {
  const having = [...images.values()].filter(({ content }) => content.blobs.includes(digest));
  return having.map(({ id, content }) => content.repoTags[0] ?? content.repoDigests[0] ?? id).join(', ') || 'no image';
}

/**
 * Begins at once with what the last life of the daemon left: to be called before anything can be pulled. `keepsAll`
 * leaves that out, for a journal that does not know what there is.
 */
export function startImageUpkeep(options: ImageUpkeepOptions, keepsAll: boolean): ImageUpkeep {
  const { images, state, log, report, checkIntervalMs, checkBytesPerSecond } = options;
  const timers: NodeJS.Timeout[] = [];
  const closed = new AbortController();
  let checking = false;

  function every(intervalMs: number, work: () => void): void {
    timers.push(setInterval(work, Math.min(intervalMs, TIMER_MS_MAX)).unref());
  }

  /** One check at a time, however long it takes. */
  async function check(): Promise<void> {
    if (checking) return;
    checking = true;
    try {
      for (const digest of await images.checkContent(checkBytesPerSecond, closed.signal)) {
        const names = namesWith(state(), digest);
        report(
          `The blob ${digest} of ${names} was damaged on the disk and is removed; pull the image again to get it back`,
        );
      }
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
    const collected = await images.collectUnknown(neededContent(state()), ageMs);
    if (collected !== null && collected.blobs + collected.layers > 0)
      log.info(collected, 'content that no image needs was collected');
  }

  const collected = keepsAll ? Promise.resolve() : inBackground(() => collect(0));
  if (keepsAll) report('The journal is a new one, so what it does not know of in the image store is kept for now');

  return {
    served() {
      void inBackground(async () => {
        await collected;
        await images.collectLeftovers();
      });
      if (checkIntervalMs !== null) every(checkIntervalMs, () => void check());
      if (keepsAll) return;
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
