/** `scribe image ls`: the images that the daemon has, as CRI's ListImages tells. */
import { type Image, ImageServiceDefinition } from '../../wire/cri/api.ts';
import { connectDaemon } from '../client.ts';
import { command } from '../command.ts';
import { bytes, jsonLine, shortId } from '../format.ts';
import { type Io, write } from '../io.ts';
import { configOption, jsonOption, socketOf, socketOption } from '../places.ts';
import { createTable } from '../table.ts';

const TIMEOUT_MS = 30_000;
const NO_NAME = '<none>';

/** A row for each tag; an image without one has its repository's. */
const rowsOf = ({ id, repoTags, repoDigests, size }: Image): string[][] => {
  const [digest = NO_NAME] = repoDigests;
  const names = repoTags.length > 0 ? repoTags : [digest];
  return names.map((name) => [name, shortId(id), bytes(Number(size))]);
};

const byName = (a: Image, b: Image): number => ((a.repoTags[0] ?? a.id) < (b.repoTags[0] ?? b.id) ? -1 : 1);

const jsonOf = ({ id, repoTags, repoDigests, size }: Image): string =>
  jsonLine({ id, repoTags, repoDigests, sizeBytes: size });

const show = async (images: readonly Image[], io: Io): Promise<void> => {
  const table = createTable(io.stdout, [
    { title: 'IMAGE', widthMax: 80 },
    { title: 'ID', widthMax: 13 },
    { title: 'SIZE', widthMax: 10 },
  ]);
  for (const row of images.flatMap(rowsOf)) await table.add(row);
  await table.flush();
};

export const imageLs = command({
  name: 'image ls',
  summary: 'list the images on this node',
  description: ['Lists the images that the daemon has: every tag, the id, and the size as it was transferred.'],
  options: { socket: socketOption, config: configOption, json: jsonOption },
  run: async (values, _operands, io) => {
    const daemon = await connectDaemon(await socketOf(values));
    try {
      const { methods } = ImageServiceDefinition;
      const { images } = await daemon.call(
        ImageServiceDefinition,
        methods.listImages,
        { filter: undefined },
        TIMEOUT_MS,
      );
      const sorted = images.toSorted(byName);
      if (values.json === true) await write(io.stdout, sorted.map(jsonOf).join(''));
      else await show(sorted, io);
    } finally {
      daemon.close();
    }
    return 0;
  },
});
