/**
 * The phases of pulls: which images there are, and how the pull of each is timed on one runtime. Before every pull the image
 * is removed, its removal has come to its end and the disk has what others wrote, so that no runtime pays for another's
 * work. Knows no goal.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Compression,
  imageOfLayers,
  type LayerEntry,
  type PackedLayer,
  packLayer,
} from '../../scripts/lib/image.ts';
import { type CriClient, criClient } from '../../scripts/lib/cri-client.ts';
import { runOk } from '../../test/support/process.ts';
import type { Registry } from '../../test/support/registry.ts';
import { keepWriting } from './busy-disk.ts';
import type { Figures, MetricKey } from './metrics.ts';
import type { Runtime } from './runtimes.ts';

/** What is pulled in a round, by the figure that it is for. */
export const pullKinds = ['layers', 'files', 'layersZstd', 'filesZstd', 'oneNew', 'five', 'many'] as const;
export type PullKind = (typeof pullKinds)[number];

interface Pulled {
  /** Pulled together. */
  readonly refs: readonly string[];
  /** There before they are pulled. */
  readonly before: readonly string[];
}

/** What is pulled, of each kind that is measured. */
export type PullImages = ReadonlyMap<PullKind, Pulled>;

const quietKeys = {
  layers: 'pullLayers',
  files: 'pullFiles',
  layersZstd: 'pullLayersZstd',
  filesZstd: 'pullFilesZstd',
  oneNew: 'pullOneNew',
  five: 'pullFive',
  many: 'pullMany',
} as const satisfies Readonly<Record<PullKind, MetricKey>>;
const busyKeys = {
  layers: 'pullLayersBusy',
  files: 'pullFilesBusy',
  layersZstd: 'pullLayersZstdBusy',
  filesZstd: 'pullFilesZstdBusy',
  oneNew: 'pullOneNewBusy',
  five: 'pullFiveBusy',
  many: 'pullManyBusy',
} as const satisfies Readonly<Record<PullKind, MetricKey>>;

const layersOfLarge = 10;
const fileBytes = 256 * 1024;
const smallFiles = 40_000;
const filesPerDirectory = 100;
const images = 5;
const layersOfEach = 2;
/** As of an image whose Dockerfile has as many lines, one under the other. */
const manyLayers = 60;
const manyLayerMb = 0.5;
const megabyte = 1_000_000;
const words = Buffer.from('what a program says, again and again, in words that are found in many of its files; ');

/** What the large files of a layer hold: so many bytes, others each time. */
export type Content = (bytes: number) => Buffer;

/** About half of it can be compressed away, as of programs: some of each KiB is random, the rest is words. */
export const halfRandomContent: Content = (bytes) => {
  const filled = Buffer.alloc(bytes, words);
  const random = randomBytes(Math.ceil(bytes / 2));
  for (let at = 0; at < bytes; at += 1024) random.copy(filled, at, at / 2, Math.min(at / 2 + 512, random.length));
  return filled;
};

const programDirectories = ['/usr/bin', '/usr/lib'];
const programMb = 256;
/** So many bytes at the beginning of a piece are random: no two are the same. */
const markBytes = 16;

/** Pieces of this machine's programs and libraries, one after the other and then again: as images have them, and no layer like another. */
export const programContent = async (): Promise<Content> => {
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  for (const directory of programDirectories)
    for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile() || sizeBytes >= programMb * megabyte) continue;
      const piece = await readFile(join(entry.parentPath, entry.name));
      pieces.push(piece);
      sizeBytes += piece.length;
    }
  const all = Buffer.concat(pieces);
  let at = 0;
  return (bytes) => {
    if (at + bytes > all.length) at = 0;
    const piece = Buffer.concat([randomBytes(markBytes), all.subarray(at + markBytes, at + bytes)]);
    at += bytes;
    return piece;
  };
};

const largeLayer = (name: string, sizeMb: number, contentOf: Content): LayerEntry[] =>
  Array.from({ length: Math.ceil((sizeMb * megabyte) / fileBytes) }, (_, file) => ({
    name: `${name}/file-${file}`,
    mode: 0o644,
    content: contentOf(fileBytes),
  }));

const smallFilesLayer = (): LayerEntry[] =>
  Array.from({ length: smallFiles }, (_, file) => ({
    name: `small/${Math.floor(file / filesPerDirectory)}/${file % filesPerDirectory}.txt`,
    mode: 0o644,
    content: `file ${file}: some words to fill a small file with\n`,
  }));

/** Builds the images of those kinds, of layers of `layerMb` with such files, and puts them into the registry: what each kind is pulled by. */
export const pushPullImages = async (
  registry: Registry,
  host: string,
  layerMb: number,
  contentOf: Content,
  kinds: readonly PullKind[],
): Promise<PullImages> => {
  const push = async (name: string, layers: readonly PackedLayer[]): Promise<string> => {
    await registry.push(`pulls/${name}`, 'latest', imageOfLayers(layers, { Cmd: ['sh'] }));
    return `${host}/pulls/${name}:latest`;
  };
  // One after the other: each is large while it is packed.
  const packed = async (
    names: readonly string[],
    sizeMb: number,
    compression?: Compression,
  ): Promise<PackedLayer[]> => {
    const layers: PackedLayer[] = [];
    for (const name of names) layers.push(await packLayer(largeLayer(name, sizeMb, contentOf), compression));
    return layers;
  };
  const numbered = (count: number, prefix: string): string[] =>
    Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  const alone = async (name: string, layers: readonly PackedLayer[]): Promise<Pulled> => ({
    refs: [await push(name, layers)],
    before: [],
  });
  const build: Readonly<Record<PullKind, () => Promise<Pulled>>> = {
    layers: async () => alone('layers', await packed(numbered(layersOfLarge, 'layer'), layerMb)),
    files: async () => alone('files', [await packLayer(smallFilesLayer())]),
    layersZstd: async () => alone('layers-zstd', await packed(numbered(layersOfLarge, 'zstd'), layerMb, 'zstd')),
    filesZstd: async () => alone('files-zstd', [await packLayer(smallFilesLayer(), 'zstd')]),
    oneNew: async () => {
      // Layers of its own: what a runtime keeps of an image that was removed must not be found by the pull of another.
      const base = await packed(numbered(layersOfLarge, 'base'), layerMb);
      const before = [await push('base', base)];
      return { refs: [await push('one-new', [...base.slice(0, -1), ...(await packed(['another'], layerMb))])], before };
    },
    five: async () => {
      const refs: string[] = [];
      for (const name of numbered(images, 'image'))
        refs.push(await push(name, await packed(numbered(layersOfEach, name), layerMb / 2)));
      return { refs, before: [] };
    },
    many: async () => alone('many', await packed(numbered(manyLayers, 'many'), manyLayerMb)),
  };
  const built = new Map<PullKind, Pulled>();
  for (const kind of kinds) built.set(kind, await build[kind]());
  return built;
};

const pullTimeoutMs = 15 * 60_000;
const settleMs = 500;

/** A removal may go on after it was answered. */
const removed = async ({ dirs }: Runtime, signal: AbortSignal): Promise<void> => {
  const trash = join(dirs.root, 'images/trash');
  const deadlineMs = performance.now() + pullTimeoutMs;
  while ((await readdir(trash).catch(() => [])).length > 0) {
    if (performance.now() > deadlineMs) throw new Error(`${trash} is not emptied`);
    await sleep(settleMs, undefined, { signal });
  }
};

interface PullBench {
  readonly dir: string;
  readonly signal: AbortSignal;
}

const prepare = async (client: CriClient, runtime: Runtime, refs: readonly string[], bench: PullBench) => {
  for (const image of refs) await client.image.removeImage({ image: { image } });
  await removed(runtime, bench.signal);
  await runOk(['sync', '--file-system', bench.dir]);
  await sleep(settleMs, undefined, { signal: bench.signal });
};

/** Pulls one kind after the other; with `isBusy` while another process writes to the same disk. */
export const measurePulls = async (
  runtime: Runtime,
  bench: PullBench,
  pulled: PullImages,
  isBusy: boolean,
): Promise<Figures> => {
  const client = criClient(runtime.socket);
  const { signal } = bench;
  const figures: Partial<Record<MetricKey, number>> = {};
  const pull = (image: string): Promise<unknown> =>
    client.image.pullImage({ image: { image } }, { timeoutMs: pullTimeoutMs, signal });
  try {
    for (const [kind, { refs, before }] of pulled) {
      await Promise.all(before.map(pull));
      await prepare(client, runtime, refs, bench);
      const stop = isBusy ? keepWriting(bench.dir) : null;
      const startedMs = performance.now();
      try {
        await Promise.all(refs.map(pull));
        figures[(isBusy ? busyKeys : quietKeys)[kind]] = performance.now() - startedMs;
      } finally {
        await stop?.();
      }
      await prepare(client, runtime, [...refs, ...before], bench);
    }
    return figures;
  } finally {
    client.close();
  }
};
