/** Which image a name means, and which images are pinned by theirs. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findImage } from '../../../src/domain/image/names.ts';
import { pinnedBy } from '../../../src/domain/image/pinned.ts';
import type { Image } from '../../../src/domain/model/state.ts';
import { image } from '../../adapters/cri/support.ts';

const hex = (digit: string): string => digit.repeat(64);
const named = (id: string, repoTags: readonly string[], repoDigests: readonly string[]): Image => {
  const base = image(id);
  return { ...base, content: { ...base.content, repoTags, repoDigests } };
};

const app = named(
  `sha256:${hex('a')}`,
  ['registry.example:5000/team/app:v1'],
  [`registry.example:5000/team/app@sha256:${hex('1')}`],
);
const box = named(
  `sha256:${hex('b')}`,
  ['docker.io/library/busybox:latest'],
  [`docker.io/library/busybox@sha256:${hex('2')}`],
);
const images = new Map([app, box].map((one) => [one.id, one]));
const found = (text: string): string | undefined => findImage({ images }, text)?.id;

describe('an image', () => {
  it('is found by id, short id, tag, digest and tag with digest', () => {
    for (const name of [
      app.id,
      hex('a'),
      'aaaaaaaaaaaa',
      'sha256:aaaa',
      'registry.example:5000/team/app:v1',
      `registry.example:5000/team/app@sha256:${hex('1')}`,
      `registry.example:5000/team/app:v1@sha256:${hex('1')}`,
    ]) {
      assert.equal(found(name), app.id, name);
    }
    for (const name of ['busybox', 'busybox:latest', 'docker.io/busybox', `busybox@sha256:${hex('2')}`]) {
      assert.equal(found(name), box.id, name);
    }
  });

  it('of a tag is not another of that tag when the digest says so', () => {
    assert.equal(found(`registry.example:5000/team/app:v1@sha256:${hex('2')}`), undefined);
    // The digest alone says which; the tag may have moved since.
    assert.equal(found(`registry.example:5000/team/app:v9@sha256:${hex('1')}`), app.id);
  });

  it('is found by nothing that does not name it', () => {
    for (const name of ['', 'aaa', hex('c'), 'registry.example:5000/team/app', 'other:latest', 'a b']) {
      assert.equal(found(name), undefined, JSON.stringify(name));
    }
  });

  it('is pinned by any of its names, or the start of one', () => {
    const cases: readonly [patterns: readonly string[], pinned: readonly Image[]][] = [
      [[], []],
      [['busybox'], [box]],
      [['registry.example:5000/team/app:v1'], [app]],
      [['registry.example:5000/team/app:v2', `sha256:${hex('a')}`], [app]],
      [['registry.example:5000/team/*'], [app]],
      [['busybox*'], []],
      [
        ['docker.io/*', 'registry.example:5000/*'],
        [app, box],
      ],
      [['*'], [app, box]],
    ];
    for (const [patterns, pinned] of cases) {
      assert.deepEqual([app, box].filter(pinnedBy(patterns)), pinned, patterns.join(' '));
    }
  });
});
