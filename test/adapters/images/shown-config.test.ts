/** Image configs as they are shown: whole, or not at all, whatever lies where they should be. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { blobPath, imageLayout } from '../../../src/adapters/images/layout.ts';
import { readShownConfig } from '../../../src/adapters/images/shown-config.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('a shown image config', () => {
  it('has all that its maker wrote, and is none where it is not there, too large or no object', async (t) => {
    const layout = imageLayout(await tempDir(t));
    await mkdir(layout.blobs, { recursive: true });
    const idOf = (digit: string): string => `sha256:${digit.repeat(64)}`;
    const config = { architecture: 'amd64', config: { Labels: { a: 'b' } }, history: [{ created_by: 'somebody' }] };
    const texts = {
      '1': JSON.stringify(config),
      '2': JSON.stringify({ history: 'x'.repeat(300_000) }),
      '3': '["no object"]',
      '4': 'no JSON',
    };
    for (const [digit, text] of Object.entries(texts)) await writeFile(blobPath(layout, idOf(digit)), text);
    assert.deepEqual(await readShownConfig(layout, idOf('1')), config);
    for (const digit of ['2', '3', '4', '5']) assert.equal(await readShownConfig(layout, idOf(digit)), null);
    assert.equal(await readShownConfig(layout, '../../etc/passwd'), null);
  });
});
