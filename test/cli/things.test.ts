/** How commands call pods, containers and images: which of them options choose and operands name. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  choosesAll,
  type ContainerThing,
  hasLabels,
  type ImageThing,
  isMeant,
  isNamed,
  NO_IMAGES,
  parseThingName,
  type PodThing,
  type Thing,
  THING_FORMS,
  thingFilterOf,
  usedImages,
} from '../../src/cli/things.ts';

const idOf = (letter: string): string => letter.repeat(64);
const web: PodThing = {
  kind: 'pod',
  id: idOf('a'),
  name: 'web',
  namespace: 'default',
  labels: { app: 'web', tier: 'front' },
};
const testWeb: PodThing = { ...web, id: idOf('b'), namespace: 'test', labels: { app: 'web' } };
const image: ImageThing = {
  kind: 'image',
  id: `sha256:${idOf('1')}`,
  repoTags: ['docker.io/library/busybox:latest'],
  repoDigests: [`docker.io/library/busybox@sha256:${idOf('2')}`],
};
const nginx: ContainerThing = {
  kind: 'container',
  id: idOf('c'),
  name: 'nginx',
  labels: { role: 'proxy' },
  pod: web,
  images: { ids: [image.id], references: ['sha256:0f3a', 'busybox', ...image.repoDigests] },
};
const orphan: ContainerThing = {
  ...nginx,
  id: idOf('d'),
  pod: null,
  labels: {},
  images: NO_IMAGES,
};
/** It has the image among its volumes. */
const mounting: ContainerThing = {
  ...nginx,
  id: idOf('e'),
  name: 'mounting',
  pod: testWeb,
  labels: {},
  images: usedImages({
    imageId: `sha256:${idOf('3')}`,
    image: { image: 'other:1' },
    mountedImages: [{ image: 'busybox', imageId: image.id }],
  }),
};
const all: Readonly<Record<string, Thing>> = { web, testWeb, nginx, orphan, image, mounting };

const chosen = (values: Parameters<typeof thingFilterOf>[0]): string[] => {
  const filter = thingFilterOf(values);
  return Object.keys(all).filter((key) => isMeant(filter, all[key] ?? web));
};

describe('options choose', () => {
  const cases: readonly (readonly [Parameters<typeof thingFilterOf>[0], readonly string[]])[] = [
    [{}, Object.keys(all)],
    [{ pod: 'web' }, ['web', 'testWeb', 'nginx', 'mounting']],
    [{ pod: 'default/web' }, ['web', 'nginx']],
    [{ pod: 'bbbb' }, ['testWeb', 'mounting']],
    [{ pod: 'bbb' }, []],
    [{ container: 'nginx' }, ['nginx', 'orphan']],
    [{ container: 'nginx', pod: 'default/web' }, ['nginx']],
    [{ container: 'nginx', pod: 'test/web' }, []],
    [{ container: 'default/web/nginx' }, ['nginx']],
    [{ container: 'web/mounting' }, ['mounting']],
    [{ container: 'test/web/nginx' }, []],
    [{ namespace: 'test' }, ['testWeb', 'mounting']],
    [{ namespace: 'default' }, ['web', 'nginx']],
    [{ label: ['app=web'] }, ['web', 'testWeb', 'nginx', 'mounting']],
    [{ label: ['app=web', 'tier'] }, ['web', 'nginx']],
    [{ label: ['role=proxy'] }, ['nginx']],
    [{ label: ['!tier'] }, ['testWeb', 'orphan', 'mounting']],
    [{ label: ['tier!=front'] }, ['testWeb', 'orphan', 'mounting']],
    [{ image: 'busybox' }, ['nginx', 'image', 'mounting']],
    [{ image: 'other:1' }, ['mounting']],
    [{ image: 'docker.io/library/busybox:latest' }, ['nginx', 'image', 'mounting']],
    [{ image: `busybox@sha256:${idOf('2')}` }, ['nginx', 'image']],
    [{ image: 'sha256:1111' }, ['nginx', 'image', 'mounting']],
  ];
  for (const [values, names] of cases) {
    test(JSON.stringify(values), () => assert.deepEqual(chosen(values), names));
  }

  test('contradictions and labels that are none are refused', () => {
    assert.throws(() => thingFilterOf({ image: 'busybox', pod: 'web' }), /--image goes with none of --pod/);
    assert.throws(() => thingFilterOf({ image: 'busybox', label: ['app'] }), /--image goes with none of --pod/);
    assert.throws(
      () => thingFilterOf({ container: 'web/nginx', pod: 'web' }),
      /web\/nginx names a pod, and so does --pod/,
    );
    for (const label of ['=x', '!a=b', '!', ''])
      assert.throws(() => thingFilterOf({ label: [label] }), /that is no label/, label);
  });

  test('a filter that chooses nothing in particular chooses all', () => {
    assert.ok(choosesAll(thingFilterOf({})));
    assert.ok(!choosesAll(thingFilterOf({ namespace: 'a' })));
    assert.ok(!choosesAll(thingFilterOf({ label: ['a'] })));
  });

  const key = fc.constantFrom('app', 'tier', 'a.b/c', '__proto__x', 'constructor');
  const labels = fc.dictionary(key, fc.constantFrom('', 'x', 'y'));

  test('a label holds or does not, never both', () => {
    fc.assert(
      fc.property(labels, key, fc.constantFrom('', 'x', 'y'), (of, name, value) => {
        const holds = (label: string): boolean => hasLabels(of, thingFilterOf({ label: [label] }).labels);
        assert.notEqual(holds(`${name}=${value}`), holds(`${name}!=${value}`));
        assert.notEqual(holds(name), holds(`!${name}`));
        assert.equal(holds(`${name}=${value}`), Object.hasOwn(of, name) && of[name] === value);
      }),
    );
  });
});

describe('an operand names', () => {
  test('what the help says it does', () => {
    const kinds = [...THING_FORMS.matchAll(/\b(\w+):/g)].map(([, kind = '']) => kind);
    assert.deepEqual(
      kinds.map((kind) => parseThingName(`${kind}:x`)),
      [
        { kind: 'pod', text: 'x' },
        { kind: 'container', text: 'x' },
        { kind: 'image', text: 'x' },
      ],
    );
  });

  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['web', ['web', 'testWeb']],
    ['test/web', ['testWeb']],
    ['default/web/nginx', ['nginx']],
    ['web/nginx', ['nginx']],
    ['nginx', ['nginx', 'orphan']],
    ['pod:nginx', []],
    ['container:nginx', ['nginx', 'orphan']],
    ['dddd', ['orphan']],
    ['busybox', ['image']],
    ['image:busybox:latest', ['image']],
    ['1111', ['image']],
    ['image:', []],
  ];
  for (const [text, names] of cases) {
    test(text, () => {
      const name = parseThingName(text);
      assert.deepEqual(
        Object.keys(all).filter((key) => isNamed(name, all[key] ?? web)),
        names,
      );
    });
  }
});
