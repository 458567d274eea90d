/** Manifests, indexes and configs: what is taken from them, and everything that is refused. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chainIdsOf } from '../../../src/adapters/images/chain-ids.ts';
import {
  checkPlatform,
  DOCUMENT_BYTES_MAX,
  type Index,
  type Manifest,
  parseConfig,
  parseDocument,
  selectManifests,
} from '../../../src/adapters/images/documents.ts';
import { type Failure, FailureError } from '../../../src/domain/model/errors.ts';
import type { Platform } from '../../../src/adapters/images/types.ts';
import { buildImage, buildIndex } from '../../support/images/build.ts';
import { tar } from '../../support/images/tar.ts';

const image = buildImage([{ tar: tar([{ path: 'a', data: 'a' }]) }]);
const dockerImage = buildImage([{ tar: tar([{ path: 'a', data: 'a' }]) }], { docker: true });
const digest = `sha256:${'0'.repeat(64)}`;
const amd64 = { os: 'linux', architecture: 'amd64' };

const failed = (work: () => unknown): Failure => {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof FailureError, String(error));
    return error.failure;
  }
  return assert.fail('it was accepted');
};

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const manifestOf = (bytes: Buffer): Record<string, unknown> => JSON.parse(bytes.toString()) as Record<string, unknown>;
const changed = (changes: Record<string, unknown>): Buffer => json({ ...manifestOf(image.manifest), ...changes });

describe('image documents', () => {
  it('reads OCI and Docker manifests', () => {
    for (const { manifest, manifestType, layers } of [image, dockerImage]) {
      const document = parseDocument(manifest, manifestType) as Manifest;
      assert.equal(document.kind, 'manifest');
      assert.deepEqual(
        document.layers.map(({ digest: layer, sizeBytes }) => ({ digest: layer, size: sizeBytes })),
        layers.map(({ digest: layer, size }) => ({ digest: layer, size })),
      );
    }
  });

  it('refuses a document with both manifests and layers, or neither', () => {
    for (const bytes of [
      changed({ manifests: [] }),
      json({ schemaVersion: 2, manifests: [], config: {} }),
      json({ schemaVersion: 2 }),
    ]) {
      assert.match(failed(() => parseDocument(bytes, '')).message, /not clearly an index or a manifest/);
    }
  });

  it('refuses a document that is not what it is called', () => {
    const index = buildIndex([{ image, ...amd64 }]);
    assert.match(failed(() => parseDocument(image.manifest, index.manifestType)).message, /is not the/);
    assert.match(failed(() => parseDocument(index.manifest, image.manifestType)).message, /is not the/);
    assert.match(failed(() => parseDocument(changed({ mediaType: index.manifestType }), '')).message, /calls itself/);
  });

  it('refuses schema 1 and says what to do', () => {
    const type = 'application/vnd.docker.distribution.manifest.v1+prettyjws';
    for (const [bytes, claimed] of [
      [json({ schemaVersion: 1, fsLayers: [] }), ''],
      [json({ fsLayers: [] }), ''],
      [image.manifest, type],
    ] as const) {
      assert.match(failed(() => parseDocument(bytes, claimed)).message, /schema 1.*push it again/);
    }
  });

  it('refuses what is no image of layers', () => {
    const config = { mediaType: 'application/vnd.oci.empty.v1+json', digest, size: 2 };
    assert.match(failed(() => parseDocument(changed({ config }), '')).message, /no container image/);
    const helm = [{ mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', digest, size: 2 }];
    assert.match(failed(() => parseDocument(changed({ layers: helm }), '')).message, /not a file system layer/);
    const encrypted = [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip+encrypted', digest, size: 2 }];
    assert.match(failed(() => parseDocument(changed({ layers: encrypted }), '')).message, /not a file system layer/);
  });

  it('takes a config that an old manifest does not call one', () => {
    const fields = manifestOf(dockerImage.manifest);
    const config = { ...(fields['config'] as object), mediaType: 'application/octet-stream' };
    const document = parseDocument(json({ ...fields, config }), '') as Manifest;
    assert.deepEqual(document.config.digest, (parseDocument(dockerImage.manifest, '') as Manifest).config.digest);
    assert.match(failed(() => parseConfig(Buffer.from('no config'))).message, /config is not JSON/);
  });

  it('refuses hostile numbers, digests and sizes', () => {
    const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size: 2 };
    for (const size of [-1, 1.5, 2 ** 60, '7', null, undefined]) {
      failed(() => parseDocument(changed({ layers: [{ ...layer, size }] }), ''));
    }
    for (const bad of ['', 'sha256:../../etc/passwd', `sha512:${'0'.repeat(128)}`, `sha256:${'A'.repeat(64)}`, 7]) {
      failed(() => parseDocument(changed({ layers: [{ ...layer, digest: bad }] }), ''));
    }
    assert.match(failed(() => parseDocument(changed({ layers: Array(128).fill(layer) }), '')).message, /more than 127/);
    // Many and wrong: none of them is looked at.
    assert.match(
      failed(() => parseDocument(changed({ layers: Array(1_000_000).fill(0) }), '')).message,
      /more than 127/,
    );
    const env = { config: { Env: Array(1_000_000).fill(0) } };
    assert.match(failed(() => parseConfig(json(env))).message, /Env of its config is not a list of texts/);
    for (const bytes of [json([]), json(null), json(7), Buffer.from('{'), Buffer.alloc(DOCUMENT_BYTES_MAX + 1, 0x20)]) {
      assert.equal(failed(() => parseDocument(bytes, '')).reason, 'ImageInvalid');
    }
  });

  it('reads no field that only a prototype has', () => {
    const bytes = Buffer.from('{"schemaVersion":2,"__proto__":{"manifests":[]},"constructor":{}}');
    assert.match(failed(() => parseDocument(bytes, '')).message, /not clearly/);
  });

  it('chooses the manifest for this machine', () => {
    const entries = [
      { image: dockerImage, os: 'windows', architecture: 'amd64' },
      { image: dockerImage, os: 'linux', architecture: 'amd64', variant: 'v3' },
      { image, os: 'linux', architecture: 'amd64' },
      { image: dockerImage, os: 'linux', architecture: 'arm64', variant: 'v8' },
    ];
    const parsed = (from: typeof entries): Index => parseDocument(buildIndex(from).manifest, '') as Index;
    const digestFor = (among: typeof entries, platform: Platform): string | undefined =>
      selectManifests(parsed(among), platform)[0]?.digest;
    assert.equal(digestFor(entries, amd64), image.digest);
    assert.equal(digestFor(entries, { os: 'linux', architecture: 'arm64' }), dockerImage.digest);
    assert.equal(digestFor(entries.slice(0, 2), amd64), dockerImage.digest);
    const failure = failed(() => selectManifests(parsed(entries), { os: 'linux', architecture: 'riscv64' }));
    assert.match(failed(() => selectManifests(parsed([]), amd64)).message, /its index names no manifest/);
    assert.match(failure.message, /not made for linux\/riscv64, only for windows\/amd64, linux\/amd64, linux\/arm64/);
  });

  it('passes over what an index names by other algorithms, and refuses one that names nothing else', () => {
    const others = ['sha512', 'blake3', 'sha256+b64u'].map((algorithm) => ({
      mediaType: image.manifestType,
      digest: `${algorithm}:${'0'.repeat(128)}`,
      size: 7,
      platform: { os: 'linux', architecture: 'amd64' },
    }));
    const own = { ...others[0], digest: image.digest, size: image.manifest.length };
    const indexOf = (manifests: readonly object[]): Index =>
      parseDocument(json({ schemaVersion: 2, manifests }), '') as Index;
    assert.deepEqual(
      selectManifests(indexOf([...others, own]), amd64).map((found) => found.digest),
      [image.digest],
    );
    assert.match(failed(() => selectManifests(indexOf(others), amd64)).message, /its manifest has no sha256 digest/);
    for (const bad of ['', 'sha512', 'sha256:../../etc/passwd', 7, `:${'0'.repeat(64)}`])
      failed(() => indexOf([own, { ...own, digest: bad }]));
  });

  it('chooses the nearest variant below the one that is asked for, and a later one only where there is no other', () => {
    const variants = ['', 'v2', 'v4', 'v3', 'odd'];
    const built = variants.map((name) => buildImage([{ tar: tar([{ path: name || 'plain' }]) }]));
    const chosen = (architecture: string, wanted: string | undefined, among = variants): string | undefined => {
      const entries = built.flatMap((one, index) => {
        const variant = variants[index] ?? '';
        return among.includes(variant) ? [{ image: one, os: 'linux', architecture, variant }] : [];
      });
      const index = parseDocument(buildIndex(entries).manifest, '') as Index;
      const platform = { os: 'linux', architecture, ...(wanted === undefined ? {} : { variant: wanted }) };
      const found = selectManifests(index, platform)[0]?.digest;
      return variants[built.findIndex((one) => one.digest === found)];
    };
    assert.equal(chosen('amd64', 'v3'), 'v3');
    assert.equal(chosen('amd64', 'v3', ['', 'v2', 'v4']), 'v2');
    assert.equal(chosen('amd64', 'v2', ['v4', '', 'odd']), '');
    assert.equal(chosen('amd64', undefined), '');
    assert.equal(chosen('amd64', undefined, ['v4', 'odd']), 'v4');
    assert.equal(chosen('arm', 'v3', ['v2', 'v4', 'v3']), 'v3');
    assert.equal(chosen('arm64', undefined, ['v4', '']), '');
  });

  it('knows platforms by the other names that builders have for them', () => {
    for (const [named, meant] of [
      ['x86_64', 'amd64'],
      ['aarch64', 'arm64'],
      ['AMD64', 'amd64'],
    ] as const) {
      const wanted = { os: 'linux', architecture: meant };
      const entries = [
        { image: dockerImage, os: 'windows', architecture: named },
        { image, os: 'Linux', architecture: named },
      ];
      const index = parseDocument(buildIndex(entries).manifest, '') as Index;
      assert.equal(selectManifests(index, wanted)[0]?.digest, image.digest, named);
      checkPlatform(parseConfig(json({ os: 'linux', architecture: named })).platform, wanted);
    }
    failed(() => checkPlatform(parseConfig(json({ os: 'linux', architecture: 'constructor' })).platform, amd64));
  });

  it('refuses an image of another platform, and takes one that does not say', () => {
    checkPlatform({ os: '', architecture: '' }, amd64);
    checkPlatform(amd64, amd64);
    const failure = failed(() => checkPlatform({ os: 'linux', architecture: 's390x' }, amd64));
    assert.match(failure.message, /made for "linux\/s390x" and this machine is linux\/amd64/);
  });

  it('takes from a config what containers are made from', () => {
    const config = {
      User: '1000:50',
      Env: ['PATH=/bin', 'A=b'],
      Entrypoint: ['/entry'],
      Cmd: null,
      WorkingDir: '/w',
      Volumes: { '/data': {}, '/more': {} },
      StopSignal: 'SIGINT',
      Labels: { 'containerd.io/restart.loguri': 'binary:///bin/sh' },
    };
    const built = buildImage([{ tar: tar([{ path: 'a' }]) }], { config });
    assert.deepEqual(parseConfig(built.config).config, {
      user: '1000:50',
      env: ['PATH=/bin', 'A=b'],
      entrypoint: ['/entry'],
      workingDir: '/w',
      volumes: ['/data', '/more'],
      stopSignal: 'SIGINT',
    });
    assert.deepEqual(parseConfig(json({ rootfs: { diff_ids: [] } })), {
      platform: { os: '', architecture: '' },
      diffIds: [],
      config: {},
    });
  });

  it('takes ENTRYPOINT [""] for none, as builders mean it', () => {
    const read = (config: object) => parseConfig(json({ config })).config;
    assert.deepEqual(read({ Entrypoint: [''], Cmd: ['/bin/sh'] }), { cmd: ['/bin/sh'] });
    assert.deepEqual(read({ Entrypoint: ['', 'x'] }), { entrypoint: ['', 'x'] });
  });

  it('refuses configs of the wrong shape or too large to be recorded', () => {
    failed(() => parseConfig(json({ config: { Env: 'PATH=/bin' } })));
    failed(() => parseConfig(json({ config: { Cmd: [1] } })));
    failed(() => parseConfig(json({ config: { User: 7 } })));
    for (const user of ['9223372036854775808', '4294967295', '4294967296:0', '0:99999999999', '1:4294967295']) {
      assert.match(failed(() => parseConfig(json({ config: { User: user } }))).message, /ids go from 0 to 4294967294/);
    }
    for (const user of ['0', '4294967294:4294967294', 'nobody', '-1', 'a:b'])
      parseConfig(json({ config: { User: user } }));
    failed(() => parseConfig(json({ rootfs: { diff_ids: ['x'] } })));
    assert.match(
      failed(() => parseConfig(json({ config: { Env: ['A='.padEnd(300_000, 'x')] } }))).message,
      /larger than/,
    );
    const volumes = (count: number) =>
      json({
        config: { Volumes: Object.fromEntries(Array.from({ length: count }, (_, index) => [`/v${index}`, {}])) },
      });
    parseConfig(volumes(128));
    assert.match(failed(() => parseConfig(volumes(129))).message, /declares 129 volumes, more than 128/);
  });

  it('names layers by all that is below them (image-spec, ChainID)', () => {
    const diffIds = ['1', '2', '3'].map((digit) => `sha256:${digit.repeat(64)}`);
    assert.deepEqual(chainIdsOf([]), []);
    assert.deepEqual(chainIdsOf(diffIds), [
      `sha256:${'1'.repeat(64)}`,
      'sha256:9932074217c35353d2e03a3f5a86549f7c67bfeb0ba53e23d69f4d4c8f7958f5',
      'sha256:50127c0d6b338be78246434b4bce23ecf75e505158ea0bbd15effeb162fbf3ec',
    ]);
  });
});
