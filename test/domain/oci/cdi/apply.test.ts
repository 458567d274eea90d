/** What CDI devices change in an OCI spec, and what of it a node or its OCI runtime can't do. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CdiEditsFact } from '../../../../src/domain/model/cdi.ts';
import { containerSpec } from '../../../../src/domain/oci/container-spec.ts';
import type { ContainerSpecInput } from '../../../../src/domain/oci/input.ts';
import { buildContainer, containerInput, failureIn, nodeV2, rootFacts, settings } from '../support.ts';

const user = { uid: 1000, gid: 1001, additionalGids: [1001] };
const withCdi = (cdi: readonly CdiEditsFact[], overrides: Partial<ContainerSpecInput> = {}) =>
  buildContainer(
    { envs: [{ key: 'MODE', token: 'secret:cri' }], mounts: [{ containerPath: '/data', hostPath: '/h' }] },
    {
      facts: {
        ...rootFacts,
        user,
        mounts: [{ hostPath: '/h', realPath: '/h', isDirectory: true, propagation: 'private', flags: [] }],
        cdi,
      },
      ...overrides,
    },
  );

describe('edits of CDI devices', () => {
  it('set variables over those of the image and of CRI, as secrets', () => {
    const { env } = withCdi([
      { env: [{ name: 'PATH', token: 'secret:1' }] },
      {
        env: [
          { name: 'MODE', token: 'secret:2' },
          { name: 'NEW', token: 'secret:3' },
        ],
      },
      { env: [{ name: 'NEW', token: 'secret:4' }] },
    ]).process;
    assert.deepEqual(env, [
      { name: 'PATH', token: 'secret:1' },
      'HOSTNAME=web',
      { name: 'MODE', token: 'secret:2' },
      { name: 'NEW', token: 'secret:4' },
    ]);
  });

  it('give devices, with the right to use them, to the user of the container', () => {
    const before = buildContainer().linux.resources.devices ?? [];
    const { devices, resources } = withCdi([
      {
        deviceNodes: [
          { path: '/dev/x', hostPath: '/dev/y', type: 'c', major: 10, minor: 5, fileMode: 0o660, permissions: 'rw' },
          { path: '/dev//pipe', type: 'p', major: 0, minor: 0, uid: 0, gid: 7 },
        ],
      },
      { deviceNodes: [{ path: '/dev/x', type: 'b', major: 11, minor: 6 }] },
    ]).linux;
    assert.deepEqual(devices, [
      { path: '/dev/x', type: 'b', major: 11, minor: 6, uid: 1000, gid: 1001 },
      { path: '/dev/pipe', type: 'p', major: 0, minor: 0, uid: 0, gid: 7 },
    ]);
    assert.deepEqual(resources.devices?.slice(before.length), [
      { allow: true, type: 'c', major: 10, minor: 5, access: 'rw' },
      { allow: true, type: 'b', major: 11, minor: 6, access: 'rwm' },
    ]);
  });

  it('mount in the place of what else is mounted there, none hidden by another', () => {
    const mounts = withCdi([
      { mounts: [{ hostPath: '/lib/a', containerPath: '/data/deep/a', options: ['ro', 'rbind'] }] },
      { mounts: [{ hostPath: 'tmpfs', containerPath: '/data/', type: 'tmpfs', options: [] }] },
    ]).mounts.filter(({ destination }) => destination.startsWith('/data'));
    assert.deepEqual(mounts, [
      { destination: '/data', type: 'tmpfs', source: 'tmpfs', options: [] },
      { destination: '/data/deep/a', type: 'bind', source: '/lib/a', options: ['ro', 'rbind'] },
    ]);
  });

  it('add hooks by name and groups but the 0, which means none', () => {
    const hook = { path: '/bin/hook', args: ['hook'], timeout: 3 };
    const env = [{ name: 'A', token: 'secret:5' }];
    const { hooks, process } = withCdi([
      {
        hooks: [
          { hookName: 'createRuntime', ...hook },
          { hookName: 'poststop', path: '/bin/other' },
        ],
      },
      { hooks: [{ hookName: 'createRuntime', path: '/bin/second', env }], additionalGids: [0, 44, 1001] },
    ]);
    assert.deepEqual(hooks, {
      createRuntime: [hook, { path: '/bin/second', env }],
      poststop: [{ path: '/bin/other' }],
    });
    assert.deepEqual(process.user, { uid: 1000, gid: 1001, additionalGids: [1001, 44] });
  });

  it('change nothing when there are none', () => {
    assert.deepEqual(withCdi([]), withCdi([{}]));
    assert.equal(withCdi([]).hooks, undefined);
  });

  it('need a node with resctrl for RDT, and an OCI runtime that moves network interfaces', () => {
    const rdt: CdiEditsFact = { intelRdt: { closID: 'gold' } };
    const net: CdiEditsFact = { netDevices: [{ hostInterfaceName: 'eth1', name: 'net1' }] };
    const refusal = (edits: CdiEditsFact) =>
      failureIn(containerSpec(containerInput({}, { facts: { ...rootFacts, cdi: [edits] } })));
    assert.deepEqual([refusal(rdt).reason, refusal(net).reason], ['HostLacks', 'HostLacks']);
    assert.match(refusal(rdt).message, /resctrl/);
    assert.match(refusal(net).message, /network interfaces/);
    const able = { node: { ...nodeV2, resctrl: true }, settings: { ...settings, netDevices: true } };
    const { linux } = withCdi([rdt, net, { intelRdt: { closID: 'silver' } }], able);
    assert.deepEqual([linux.intelRdt, linux.netDevices], [{ closID: 'silver' }, { eth1: { name: 'net1' } }]);
  });
});
