/** The spec that a runtime handler's containers begin with: what of it counts, under what the pod asks for. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseBaseSpec } from '../../../src/domain/oci/base-spec.ts';
import { writtenRlimits } from '../../../src/domain/oci/rlimits.ts';
import type { BaseSpec } from '../../../src/domain/model/base-spec.ts';
import { buildContainer, imageConfig, privilegedPod, settings, withContext } from './support.ts';

const parse = (content: unknown): BaseSpec =>
  parseBaseSpec(content, (problem) => {
    throw new Error(problem);
  });
const over = (content: object) => ({ settings: { ...settings, baseSpec: parse(content) } });

/** The kind of file that tools print. */
const printed = {
  ociVersion: '1.1.0',
  process: {
    user: { uid: 5, gid: 5 },
    args: ['sh'],
    cwd: '/elsewhere',
    env: ['PATH=/base', 'BASE=1', 'MODE=base'],
    capabilities: { bounding: ['CAP_CHOWN', 'CAP_NET_RAW'], effective: ['CAP_CHOWN'] },
    rlimits: [{ type: 'RLIMIT_NOFILE', soft: 1024, hard: 4096 }],
    noNewPrivileges: true,
  },
  root: { path: 'rootfs' },
  hostname: 'base',
  mounts: [
    { destination: '/proc', type: 'proc', source: 'elsewhere' },
    { destination: '/run/', type: 'tmpfs', options: ['nosuid'] },
    { destination: '/dev/hugepages', type: 'hugetlbfs', source: 'none' },
  ],
  hooks: { createRuntime: [{ path: '/bin/hook', args: ['hook', 'x'], timeout: 5 }] },
  annotations: { 'vendor.example/base': 'yes', 'io.kubernetes.cri.container-type': 'forged' },
  linux: {
    namespaces: [{ type: 'pid' }],
    cgroupsPath: '/elsewhere',
    seccomp: { defaultAction: 'SCMP_ACT_ALLOW' },
    sysctl: { 'net.core.somaxconn': '1024' },
    resources: {
      devices: [
        { allow: false, access: 'rwm' },
        { allow: true, type: 'c', major: 10, minor: 229, access: 'rw' },
      ],
      memory: { limit: 1000, swappiness: 10 },
      pids: { limit: 100 },
    },
    devices: [{ path: '/dev/fuse', type: 'c', major: 10, minor: 229 }],
  },
};

describe('a base spec', () => {
  const spec = buildContainer({ linux: { resources: { memoryLimitInBytes: '5000' } } }, over(printed));

  it('may say that a limit of a process is none, as the kernel does', () => {
    const file = '{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":18446744073709551615,"soft":65536}]}}';
    const { rlimits = [] } = parse(JSON.parse(file));
    assert.equal(
      JSON.stringify(writtenRlimits(rlimits)),
      '[{"type":"RLIMIT_MEMLOCK","soft":65536,"hard":18446744073709551615}]',
    );
  });

  it('gives what nobody asks for', () => {
    assert.deepEqual(spec.process.rlimits, printed.process.rlimits);
    assert.equal(spec.process.noNewPrivileges, true);
    assert.deepEqual(spec.process.capabilities.bounding, ['CAP_CHOWN', 'CAP_NET_RAW']);
    assert.deepEqual(spec.hooks, printed.hooks);
    assert.equal(spec.linux.sysctl?.['net.core.somaxconn'], '1024');
    assert.deepEqual(spec.linux.resources.pids, { limit: 100 });
    assert.deepEqual(
      spec.linux.devices?.map(({ path }) => path),
      ['/dev/fuse'],
    );
    assert.equal(spec.annotations?.['vendor.example/base'], 'yes');
  });

  it('comes after what the image, the pod and scribe say', () => {
    assert.deepEqual(spec.process.user, { uid: 0, gid: 0, additionalGids: [0] });
    assert.deepEqual(spec.process.args, ['/entry', 'serve', '--fast']);
    assert.equal(spec.process.cwd, '/app');
    const env = spec.process.env.filter((entry) => typeof entry === 'string');
    assert.ok(env.includes('PATH=/app/bin:/bin') && env.includes('MODE=image') && env.includes('BASE=1'));
    assert.equal(spec.linux.resources.memory?.limit, 5000);
    assert.equal((spec.linux.resources.memory as { swappiness?: number }).swappiness, 10);
    assert.equal(spec.annotations?.['io.kubernetes.cri.container-type'], 'container');
    assert.notEqual(spec.linux.cgroupsPath, '/elsewhere');
    assert.equal(spec.linux.seccomp, undefined);
    assert.equal(spec.hostname, undefined);
    const without = buildContainer(withContext({ capabilities: { dropCapabilities: ['CHOWN'] } }), over(printed));
    assert.deepEqual(without.process.capabilities.bounding, ['CAP_NET_RAW']);
  });

  it('gives its PATH to an image that has none', () => {
    const env = buildContainer({}, { ...over(printed), imageConfig: { ...imageConfig, env: [] } }).process.env;
    assert.ok(
      env.includes('PATH=/base') &&
        !env.some((entry) => (typeof entry === 'string' ? entry : entry.name).startsWith('PATH=/usr')),
    );
  });

  it('mounts where nothing else is, each below what it lies in', () => {
    const at = (destination: string) => spec.mounts.findIndex((mount) => mount.destination === destination);
    assert.equal(spec.mounts[at('/proc')]?.source, 'proc');
    assert.deepEqual(spec.mounts[at('/run')], {
      destination: '/run',
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid'],
    });
    assert.ok(at('/dev/hugepages') > at('/dev'));
  });

  it('allows devices beside those that all have, and denies none to the privileged', () => {
    const rules = spec.linux.resources.devices ?? [];
    assert.deepEqual(rules[0], { allow: false, access: 'rwm' });
    assert.deepEqual(rules.at(-1), { allow: true, type: 'c', major: 10, minor: 229, access: 'rw' });
    const privileged = buildContainer(withContext({ privileged: true }), {
      ...over(printed),
      sandboxConfig: privilegedPod,
    });
    assert.ok(!privileged.linux.resources.devices?.some(({ allow }) => !allow));
  });

  it('that is empty changes nothing', () => {
    assert.deepEqual(buildContainer({}, over({})), buildContainer({}));
  });

  for (const [content, problem] of [
    [[], /^it must be an object$/],
    [{ windows: {} }, /^it has a field "windows" that is not known$/],
    [
      { process: { rlimits: [{ type: 'NOFILE', soft: 1, hard: 1 }] } },
      /^process\.rlimits\[0\]\.type must be like RLIMIT_NOFILE$/,
    ],
    [
      { process: { rlimits: [{ type: 'RLIMIT_CPU', soft: 2, hard: 1 }] } },
      /^process\.rlimits\[0\]\.soft is 2, more than/,
    ],
    [{ process: { env: ['=x'] } }, /^process\.env\[0\] must be like NAME=value$/],
    [
      { process: { capabilities: { bounding: ['CAP_FLY'] } } },
      /^process\.capabilities\.bounding\[0\] is CAP_FLY, which is no/,
    ],
    [{ mounts: [{ destination: 'run' }] }, /^mounts\[0\]\.destination must be an absolute path$/],
    [{ mounts: [{ destination: '/run' }] }, /^mounts\[0\]\.source must be text$/],
    [{ hooks: { prestrat: [] } }, /^hooks has a field "prestrat" that is not known$/],
    [{ hooks: { prestart: [{ path: 'x' }] } }, /^hooks\.prestart\[0\]\.path must be an absolute path$/],
    [{ linux: { resources: { blockIO: {} } } }, /^linux\.resources has a field "blockIO" that is not known$/],
    [{ linux: { resources: { memory: { limit: '1' } } } }, /^linux\.resources\.memory\.limit must be a whole number/],
    [{ linux: { sysctl: { a: {} } } }, /^linux\.sysctl\.a must be text$/],
    [{ linux: { rootfsPropagation: 'public' } }, /^linux\.rootfsPropagation must be private, slave, shared/],
  ] as const) {
    it(`refuses ${JSON.stringify(content)}, naming the field`, () => {
      assert.throws(() => parse(content), { message: problem });
    });
  }

  it('of any content is refused in words or read', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.jsonValue(),
        fc.constantFrom('process', 'linux', 'mounts', 'hooks'),
        (a, b, key) => {
          for (const content of [a, { [key]: b }, { [key]: { resources: b, rlimits: a, env: b } }]) {
            try {
              parse(content);
            } catch (error) {
              assert.equal((error as Error).constructor, Error);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
