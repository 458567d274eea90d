/** What the check of stored images finds in a real node is journaled, shown by history, and mended by a pull. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DamagedContent } from '../../src/domain/model/notes.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { eventually } from '../support/pods.ts';

test('a blob that was damaged is a record of its image, told by history, and comes back with the next pull', async (t) => {
  const { daemon } = await startNode(t, { config: '[images]\ncheck_interval = "1s"\n' });
  const { image } = await daemon.cri.image.imageStatus({ image: { image: busyboxName } });
  const blob = join(daemon.dirs.root, 'images/blobs/sha256', (image?.id ?? '').replace('sha256:', ''));
  const whole = await readFile(blob);
  await writeFile(blob, '{}');
  const damaged = await eventually('the finding', async () =>
    (await recordsOf(daemon)).find(({ type }) => type === 'content.damaged'),
  );
  assert.equal(damaged.stream, `image/${image?.id}`);
  const body = damaged.body as DamagedContent;
  assert.deepEqual([body.kind, body.digest], ['blob', image?.id]);
  const { stdout } = await daemon.scribe('history', '--root', daemon.dirs.root, '--image', busyboxName, '--failed');
  assert.match(stdout, /blob (altered|missing) .*pull the image again/);
  await daemon.cri.image.pullImage({ image: { image: busyboxName } });
  assert.ok((await readFile(blob)).equals(whole));
  assert.deepEqual(await daemon.leftovers(), noLeftovers);
});
