/**
 * Keeps the image store to what the journal knows of: what a crash or a failed pull left is collected, once before
 * anything is pulled and from time to time after. Says what is needed; the images adapter takes out the rest.
 */
import type { ImagesAdapter } from '../adapters/images/adapter.ts';
import type { NodeState } from '../domain/state.ts';

const COLLECT_EVERY_MS = 3_600_000;
/** The layers of a pull that failed are there for the next attempt, which a kubelet makes within minutes. */
const UNKNOWN_AGE_MS = 3_600_000;

type StoredContent = Parameters<ImagesAdapter['collectUnknown']>[0];

export interface ImageUpkeepOptions {
  readonly images: Pick<ImagesAdapter, 'collectUnknown' | 'collectLeftovers'>;
  /** As it is now; must know of every image by the time its fetch has long ended. */
  readonly state: () => NodeState;
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
  const ofContainers = [...containers.values()].flatMap(({ chainIds }) => chainIds);
  return {
    blobs: contents.flatMap(({ blobs }) => blobs),
    chainIds: [...ofContainers, ...contents.flatMap(({ layers }) => layers.map(({ chainId }) => chainId))],
  };
}

/**
 * Begins at once with what the last life of the daemon left: to be called before anything can be pulled. `keepsAll`
 * leaves that out, for a journal that does not know what there is.
 */
export function startImageUpkeep(options: ImageUpkeepOptions, keepsAll: boolean): ImageUpkeep {
  const { images, state, log, report } = options;
  let timer: NodeJS.Timeout | null = null;

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
      if (keepsAll) return;
      timer = setInterval(() => {
        void inBackground(async () => {
          await collect(UNKNOWN_AGE_MS);
          await images.collectLeftovers();
        });
      }, COLLECT_EVERY_MS);
      timer.unref();
    },
    close() {
      if (timer !== null) clearInterval(timer);
    },
  };
}
