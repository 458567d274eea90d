/**
 * What changes on a node while scribe has pods on it, in some histories: the configuration from one start to the next,
 * which image a tag names, content that is damaged, and whose a pid is. Only what is so; checks of it are in
 * changing-checks.ts.
 */
import type { ImageContent } from '../../src/domain/model/image-content.ts';
import type { DaemonFacts } from '../../src/domain/model/daemon-facts.ts';
import type { NriFacts } from '../../src/domain/model/nri-settings.ts';
import type { RuntimeHandler } from '../../src/domain/model/runtime-handler.ts';
import type { LaunchedTask } from '../../src/domain/model/tasks.ts';
import type { Dimensions } from './dimensions.ts';
import { CONF_LIST, factsOf } from './facts.ts';
import { DATA_IMAGE, IMAGE, NEWER_IMAGE, PAUSE_IMAGE } from './images.ts';
import type { Random } from './random.ts';

export interface Changing {
  readonly dimensions: Dimensions;
  facts: DaemonFacts;
  /** Handlers that some start did not have. */
  readonly lacked: Set<string>;
  /** Names of networks that each handler had; '': those without one of their own. */
  readonly networks: Map<string, Set<string>>;
  /** By which handler each pod's shim was started. */
  readonly shimHandlers: Map<string, string>;
  /** What the application's tag names. */
  app: ImageContent;
  /** Ids of images that were given for each reference. */
  readonly given: Map<string, Set<string>>;
  /** Layers that are gone from the disk and were not pulled since. */
  readonly damaged: Set<string>;
  /** Pids of processes that have ended. */
  readonly freePids: number[];
  /** Processes that are nobody's pods': they have the pid of one that has ended. */
  readonly strangers: Set<number>;
  nextPid: number;
  nextTicks: number;
}

const EACH_RATE = 0.4;
const MOVES_RATE = 0.15;
const REUSED_RATE = 0.5;

/** The network that this one's pods get is its own. */
export const NET_HANDLER: RuntimeHandler = {
  name: 'net',
  runtimeType: 'io.containerd.runc.v2',
  binaryName: 'crun',
  systemdCgroup: false,
  sandboxer: 'pause',
  userNamespaces: true,
  cni: { confDir: '/etc/cni/other' },
};

/** One of the simulated NRI plugins has to be there for containers, which wait for it when a daemon has started. */
const REQUIRING: NriFacts = { validator: { requiredPlugins: ['first'] }, startupWaitMs: 3_000 };

export const createChanging = (dimensions: Dimensions, seed: number): Changing => {
  const facts = factsOf(seed, IMAGE.repoTags[0] ?? null);
  return {
    dimensions,
    facts: {
      ...facts,
      handlers: [...facts.handlers, NET_HANDLER],
      ...(dimensions.pluginsAreThere && seed % 2 === 0 ? { nri: REQUIRING } : {}),
    },
    lacked: new Set(),
    networks: new Map(),
    shimHandlers: new Map(),
    app: IMAGE,
    given: new Map(),
    damaged: new Set(),
    freePids: [],
    strangers: new Set(),
    nextPid: 1000,
    nextTicks: 1,
  };
};

/** Handlers that a node may do without. */
const REMOVABLE: readonly RuntimeHandler[] = [
  ...factsOf(1, null).handlers.filter(({ name }) => name === 'own'),
  NET_HANDLER,
];

/** Whoever configures scribe has been there since it last ran. */
export function changeConfiguration(changing: Changing, random: Random): void {
  const { facts } = changing;
  const runc = facts.handlers.slice(0, 1).map(
    (one): RuntimeHandler => ({
      ...one,
      sandboxer: random.pick(['none', 'pause']),
      binaryName: random.pick(['runc', 'crun']),
    }),
  );
  const kept = REMOVABLE.filter(() => !random.chance(EACH_RATE));
  for (const handler of REMOVABLE) if (!kept.includes(handler)) changing.lacked.add(handler.name);
  const images = [null, IMAGE.repoTags[0] ?? null, PAUSE_IMAGE.repoTags[0] ?? null];
  changing.facts = {
    ...facts,
    handlers: [...runc, ...kept],
    sandboxImage: random.chance(EACH_RATE) ? random.pick(images) : facts.sandboxImage,
  };
}

export interface ToldNetwork {
  readonly handler?: string;
  readonly confList: typeof CONF_LIST;
}

/** A network that is configured from now on: everybody's, or that of the handler that has its own. */
export function configureNetwork({ networks }: Changing, handler: string, number: number): ToldNetwork {
  const name = handler === '' ? `sim${number}` : `${handler}${number}`;
  networks.set(handler, new Set([...(networks.get(handler) ?? []), name]));
  return { ...(handler === '' ? {} : { handler }), confList: { ...CONF_LIST, name } };
}

const IMAGES: readonly ImageContent[] = [DATA_IMAGE, PAUSE_IMAGE];

/** What a registry gives for a reference. */
export function pulledImage(changing: Changing, random: Random, reference: string): ImageContent {
  const other = IMAGES.find(({ repoTags }) => repoTags.includes(reference));
  if (other === undefined && changing.dimensions.tagsMove && random.chance(MOVES_RATE))
    changing.app = changing.app === IMAGE ? NEWER_IMAGE : IMAGE;
  return given(changing, other ?? changing.app);
}

/** Of an archive or a registry. */
export function given({ given: ids }: Changing, image: ImageContent): ImageContent {
  for (const name of image.repoTags) ids.set(name, new Set([...(ids.get(name) ?? []), image.id]));
  return image;
}

/** A process of this node: pid and start time name it for ever. */
export function newProcess(changing: Changing, random: Random): LaunchedTask {
  const startTicks = String(changing.nextTicks++);
  const reused =
    changing.dimensions.pidsAreReused && random.chance(REUSED_RATE) ? changing.freePids.shift() : undefined;
  if (reused !== undefined) changing.strangers.delete(reused);
  return { pid: reused ?? changing.nextPid++, startTicks };
}

/** A process has ended, and its pid goes to whoever comes next. */
export function freePid(changing: Changing, pid: number): void {
  if (!changing.dimensions.pidsAreReused || changing.freePids.includes(pid)) return;
  changing.freePids.push(pid);
  changing.strangers.add(pid);
}
