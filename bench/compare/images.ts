/**
 * The phase of a node with many images: small ones, each on a base that is there, as pods' own images are, which come now
 * and then and then one right after the other, as when a node is filled; pulled again, as imagePullPolicy Always does at every start of a pod; asked for and listed beside all
 * others; removed one after the other, as the kubelet's garbage collection does. Knows no goal.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CriClient, criClient } from '../../scripts/lib/cri-client.ts';
import { busyboxLayer, imageOfLayers, packLayer } from '../../scripts/lib/image.ts';
import type { Registry } from '../../test/support/registry.ts';
import type { Figures } from './metrics.ts';
import type { Runtime } from './runtimes.ts';
import { median } from './statistics.ts';

const BASE = 'base';
const layersOfItsOwn = 2;
const lists = 20;
/** Of the images a quarter comes now and then: so long after the one before. */
const shareApart = 1 / 4;
const apartMs = 700;
/** Few come alone: scribe has put away by then what it pulls with. */
const countAlone = 2;
const aloneMs = 16_000;

/** The base and `count` images on it are put into the registry: what they are pulled by, the base first. */
export const pushManyImages = async (registry: Registry, host: string, count: number): Promise<readonly string[]> => {
  const base = await packLayer(await busyboxLayer());
  const push = async (name: string, own: readonly string[]): Promise<string> => {
    const layers = own.map((file) => packLayer([{ name: file, mode: 0o644, content: `${file}\n`.repeat(500) }]));
    const image = imageOfLayers([base, ...(await Promise.all(layers))], { Cmd: [name] });
    await registry.push(`many/${name}`, 'latest', image);
    return `${host}/many/${name}:latest`;
  };
  const refs = [await push(BASE, [])];
  for (let index = 0; index < count; index += 1) {
    const name = `image-${index}`;
    const own = Array.from({ length: layersOfItsOwn }, (_, layer) => `${name}-${layer}`);
    refs.push(await push(name, own));
  }
  return refs;
};

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
};

/** How long one takes of those that come one after the other: the median. */
const eachOf = async <T>(items: readonly T[], work: (item: T) => Promise<unknown>, beforeMs = 0): Promise<number> => {
  const tookMs: number[] = [];
  for (const item of items) {
    if (beforeMs > 0) await sleep(beforeMs);
    tookMs.push(await timed(() => work(item)));
  }
  return median(tookMs);
};

const measure = async (
  { image: images }: Pick<CriClient, 'image'>,
  [base, ...refs]: readonly string[],
): Promise<Figures> => {
  const pull = (image: string): Promise<unknown> => images.pullImage({ image: { image } });
  const remove = (image: string): Promise<unknown> => images.removeImage({ image: { image } });
  if (base === undefined) return {};
  await pull(base);
  const again = Array.from({ length: lists });
  const apart = countAlone + Math.ceil(refs.length * shareApart);
  const figures = {
    imagePullAlone: await eachOf(refs.slice(0, countAlone), pull, aloneMs),
    imagePullApart: await eachOf(refs.slice(countAlone, apart), pull, apartMs),
    imagePull: await eachOf(refs.slice(apart), pull),
    imagePullAgain: await eachOf(refs, pull),
    imageStatus: await eachOf(refs, (image) => images.imageStatus({ image: { image } })),
    imageList: await eachOf(again, () => images.listImages({})),
    imageFsInfo: await eachOf(again, () => images.imageFsInfo({})),
    imageRemove: await eachOf(refs, remove),
  };
  await remove(base);
  return figures;
};

export const measureImages = async (runtime: Runtime, refs: readonly string[]): Promise<Figures> => {
  const client = criClient(runtime.socket);
  try {
    return await measure(client, refs);
  } finally {
    client.close();
  }
};
