/** What a CDI spec file may say, and what it is told when it is wrong; names of devices and where configs have them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cdiDevicesOf, checkCdiDevices } from '../../../../src/domain/oci/cdi/names.ts';
import { parseCdiSpec } from '../../../../src/domain/oci/cdi/spec-file.ts';
import type { CdiEdits } from '../../../../src/domain/model/cdi.ts';
import { FailureError } from '../../../../src/domain/model/errors.ts';

const full: CdiEdits = {
  env: ['A=1', 'B='],
  deviceNodes: [
    {
      path: '/dev/x',
      hostPath: '/dev/y',
      type: 'c',
      major: 1,
      minor: 3,
      fileMode: 0o660,
      permissions: 'rw',
      uid: 1,
      gid: 2,
    },
  ],
  netDevices: [{ hostInterfaceName: 'eth1', name: 'net1' }],
  hooks: [{ hookName: 'createContainer', path: '/usr/bin/hook', args: ['hook', ''], env: ['H=1'], timeout: 5 }],
  mounts: [{ hostPath: '/lib', containerPath: '/usr/lib', type: 'bind', options: ['ro', 'rbind'] }],
  intelRdt: {
    closID: 'gold',
    l3CacheSchema: 'L3:0=f',
    memBwSchema: 'MB:0=50',
    schemata: ['L2:0=1'],
    enableMonitoring: true,
  },
  additionalGids: [0, 44],
};
const device = { name: 'd0', containerEdits: { env: ['A=1'] } };
const file = { cdiVersion: '1.1.0', kind: 'vendor.com/gpu', devices: [device] };
const withEdits = (containerEdits: unknown, cdiVersion = '1.1.0') => ({ ...file, cdiVersion, containerEdits });

const problemOf = (content: unknown): string => {
  try {
    parseCdiSpec(content, '/etc/cdi/a.yaml');
  } catch (error) {
    assert.ok(error instanceof FailureError, String(error));
    assert.equal(error.failure.reason, 'HostFailed');
    assert.match(error.message, /^the CDI spec \/etc\/cdi\/a\.yaml: [^\n]+$/);
    return error.message.slice('the CDI spec /etc/cdi/a.yaml: '.length);
  }
  return '';
};

describe('a CDI spec', () => {
  it('is taken with all that it may say', () => {
    const annotations = { 'vendor.com/note': 'x' };
    const whole = { ...withEdits(full), annotations, devices: [{ ...device, annotations }] };
    assert.deepEqual(parseCdiSpec(whole, '/x'), { kind: 'vendor.com/gpu', devices: [device], containerEdits: full });
  });

  it('may be as YAML has it: numbers for names, null for nothing, an unbuffered character device', () => {
    const devices = [{ name: 0, containerEdits: { deviceNodes: [{ path: '/dev/x', type: 'u', major: null }] } }];
    const spec = parseCdiSpec({ ...file, cdiVersion: 'v0.5.0', devices, containerEdits: null }, '/x');
    assert.deepEqual(spec.devices, [{ name: '0', containerEdits: { deviceNodes: [{ path: '/dev/x', type: 'c' }] } }]);
    assert.deepEqual(spec.containerEdits, {});
  });

  const refusals: readonly (readonly [string, unknown, RegExp])[] = [
    ['is no object', [], /^it must be an object/],
    ['has a field that is not known', { ...file, device: [] }, /^it has a field "device"/],
    ['has no version', { ...file, cdiVersion: undefined }, /^cdiVersion must be/],
    [
      'has a version that is not known',
      { ...file, cdiVersion: '2.0.0' },
      /^cdiVersion is "2\.0\.0": it must be one of 0\.1\.0/,
    ],
    ['has a kind without a class', { ...file, kind: 'vendor.com' }, /^kind must be like vendor\.com\/class/],
    ['has a kind with two', { ...file, kind: 'vendor.com/a/b' }, /^kind/],
    ['has too long a class', { ...file, kind: `v/${'c'.repeat(64)}` }, /^kind has a class of more than 63/],
    ['has no devices', { ...file, devices: [] }, /^devices is empty/],
    ['has no list of devices', { ...file, devices: {} }, /^devices must be a list/],
    ['has a device twice', { ...file, devices: [device, device] }, /^devices has "d0" twice/],
    ['has a bad name', { ...file, devices: [{ ...device, name: '../x' }] }, /^devices\[0\]\.name must be/],
    ['has a device that does nothing', { ...file, devices: [{ name: 'a' }] }, /^devices\[0\]\.containerEdits is empty/],
    ['has an unknown edit', withEdits({ envs: [] }), /^containerEdits has a field "envs"/],
    ['has env without a value', withEdits({ env: ['A'] }), /^containerEdits\.env\[0\] must be like NAME=value/],
    ['has NUL in env', withEdits({ env: ['A=\0'] }), /env\[0\]/],
    [
      'has a relative device',
      withEdits({ deviceNodes: [{ path: 'dev/x' }] }),
      /deviceNodes\[0\]\.path must be an absolute path/,
    ],
    ['has a bad type', withEdits({ deviceNodes: [{ path: '/x', type: 'd' }] }), /type must be b, c, u or p/],
    [
      'has bad permissions',
      withEdits({ deviceNodes: [{ path: '/x', permissions: 'rx' }] }),
      /permissions must be some of/,
    ],
    [
      'has a bad mode',
      withEdits({ deviceNodes: [{ path: '/x', fileMode: '0660' }] }),
      /fileMode must be a whole number/,
    ],
    [
      'has a mount without a place',
      withEdits({ mounts: [{ hostPath: '/a' }] }),
      /mounts\[0\]\.containerPath must be an absolute/,
    ],
    [
      'has a mount without a source',
      withEdits({ mounts: [{ containerPath: '/a' }] }),
      /mounts\[0\]\.hostPath must be text/,
    ],
    [
      'has an unknown hook',
      withEdits({ hooks: [{ hookName: 'before', path: '/x' }] }),
      /hookName must be one of prestart/,
    ],
    [
      'has a relative hook',
      withEdits({ hooks: [{ hookName: 'poststop', path: 'x' }] }),
      /hooks\[0\]\.path must be an absolute/,
    ],
    [
      'has a hook without time',
      withEdits({ hooks: [{ hookName: 'poststop', path: '/x', timeout: 0 }] }),
      /timeout must be/,
    ],
    ['has a bad class of RDT', withEdits({ intelRdt: { closID: '../a' } }), /closID must be a file name/],
    ['has a bad group', withEdits({ additionalGids: [-1] }), /additionalGids\[0\] must be a whole number/],
    [
      'has a bad interface',
      withEdits({ netDevices: [{ hostInterfaceName: 'a/b', name: 'n' }] }),
      /hostInterfaceName must be/,
    ],
    [
      'names two interfaces alike',
      withEdits({ netDevices: ['a', 'b'].map((hostInterfaceName) => ({ hostInterfaceName, name: 'n' })) }),
      /netDevices has the same name twice/,
    ],
    ['has too new a field: type', withEdits({ mounts: full.mounts }, '0.3.0'), /mounts\.type came with 0\.4\.0/],
    [
      'has too new a field: hostPath',
      withEdits({ deviceNodes: full.deviceNodes }, '0.4.0'),
      /hostPath came with 0\.5\.0/,
    ],
    [
      'has too new a name',
      { ...file, cdiVersion: '0.4.0', devices: [{ ...device, name: '0' }] },
      /digit came with 0\.5\.0/,
    ],
    [
      'has too new annotations',
      { ...file, cdiVersion: '0.5.0', annotations: { a: 'b' } },
      /annotations came with 0\.6\.0/,
    ],
    ['has too new a kind', { ...file, cdiVersion: '0.5.0', kind: 'v/a.b' }, /a dot in the class .* 0\.6\.0/],
    ['has too new a field: intelRdt', withEdits({ intelRdt: { closID: 'a' } }, '0.6.0'), /intelRdt came with 0\.7\.0/],
    ['has too new a field: gids', withEdits({ additionalGids: [1] }, '0.6.0'), /additionalGids came with 0\.7\.0/],
    [
      'has too new a field: netDevices',
      withEdits({ netDevices: full.netDevices }, '1.0.0'),
      /netDevices came with 1\.1\.0/,
    ],
    [
      'has too new a field: schemata',
      withEdits({ intelRdt: full.intelRdt }, '1.0.0'),
      /schemata or .* came with 1\.1\.0/,
    ],
  ];
  for (const [what, content, problem] of refusals)
    it(`that ${what} is refused`, () => assert.match(problemOf(content), problem));
});

describe('CDI devices of a container', () => {
  it('are those of the field, then those of annotations, each once', () => {
    const config = {
      CDIDevices: [{ name: 'v/c=b' }, { name: 'v/c=a' }],
      annotations: { 'cdi.k8s.io/plugin_x': 'v/c=a,v/c=d', other: 'v/c=e' },
    };
    checkCdiDevices(config);
    assert.deepEqual(cdiDevicesOf(config), ['v/c=b', 'v/c=a', 'v/c=d']);
    assert.deepEqual(cdiDevicesOf({}), []);
  });

  it('have names that are bounded, as is their number', () => {
    const check = (names: readonly string[]) => () => checkCdiDevices({ CDIDevices: names.map((name) => ({ name })) });
    assert.doesNotThrow(check(['a/b=c', 'vendor.com/net-x_1=0:a.b']));
    assert.throws(check([`v/c=${'0'.repeat(600)}`]), /^FailureError: CDI_devices\.name is /);
    assert.throws(check(Array.from({ length: 1_001 }, () => 'v/c=a')), /more than 1000 entries/);
  });
});
