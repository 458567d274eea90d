/** Launching shims of all versions, as far as it is pure: names, versions, what start is fed and what it prints. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  parseShimVersion,
  parseStartOutput,
  shimArguments,
  shimBinaryName,
  shimEnvironment,
  socketPathOf,
  startInput,
} from '../../../src/adapters/shim/process/bootstrap.ts';
import { watchesMemoryFromCreation } from '../../../src/domain/model/shim-version.ts';
import { BootstrapParams, BootstrapResult } from '../../../src/wire/runtime/bootstrap/v1/bootstrap.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';

const address = 'unix:///run/containerd/s/9a3f';
const text = (value: string): Uint8Array => Buffer.from(value);

describe('the name of a shim binary', () => {
  it('comes from the last two parts of the runtime type', () => {
    assert.equal(shimBinaryName('io.containerd.runc.v2'), 'containerd-shim-runc-v2');
    assert.equal(shimBinaryName('io.containerd.kata-qemu.v2'), 'containerd-shim-kata-qemu-v2');
  });
  it('is refused where it would not be one', () => {
    for (const type of ['', 'runc', 'io.containerd.', 'a.../../b', 'x.y/z.v2', 'x.runc.v2\n']) {
      assert.throws(() => shimBinaryName(type), { name: 'FailureError' });
    }
  });
});

describe('the version of a shim', () => {
  const printed = (version: string): string =>
    `containerd-shim-runc-v2:\n  Version:  ${version}\n  Revision: \n  Go version: go1.26\n\n`;
  it('is read from what -v prints', () => {
    assert.deepEqual(parseShimVersion(printed('1.6.20~ds1')), { major: 1, minor: 6 });
    assert.deepEqual(parseShimVersion(printed('v2.0.1')), { major: 2, minor: 0 });
    assert.deepEqual(parseShimVersion(printed('2.3.7+unknown')), { major: 2, minor: 3 });
    assert.equal(parseShimVersion(printed('')), null);
    assert.equal(parseShimVersion('Kata Containers shim: version: 3.2.0'), null);
  });
  it('says since when it watches the memory of its tasks', () => {
    const watches = (...versions: string[]): boolean[] =>
      versions.map((version) => watchesMemoryFromCreation(parseShimVersion(printed(version))));
    assert.deepEqual(watches('1.6.20~ds1', '1.7.27', 'v2.1.8', ''), [false, false, false, false]);
    assert.deepEqual(watches('v2.2.0', 'v2.4.2', '3.0.0'), [true, true, true]);
  });
});

describe('what start is fed', () => {
  const fed = (version: Parameters<typeof startInput>[0]): Uint8Array =>
    startInput(version, 'pod', '/events', '/daemon');
  it('is nothing up to 2.2, and when the version is not known', () => {
    for (const version of [
      { major: 1, minor: 6 },
      { major: 1, minor: 7 },
      { major: 2, minor: 0 },
      { major: 2, minor: 2 },
      null,
    ]) {
      assert.equal(fed(version).length, 0);
    }
  });
  it('is BootstrapParams from 2.3 on, with the id and namespace of the command line', () => {
    for (const version of [
      { major: 2, minor: 3 },
      { major: 2, minor: 4 },
      { major: 3, minor: 0 },
    ]) {
      const params = BootstrapParams.decode(fed(version));
      assert.equal(params.instanceId, 'pod');
      assert.equal(params.namespace, 'k8s.io');
      assert.equal(params.containerdTtrpcAddress, '/events');
      assert.equal(params.containerdGrpcAddress, '/daemon');
      assert.deepEqual(params.extensions, []);
    }
  });
  it('comes with a command line and environment that all versions read', () => {
    const invocation = { id: 'pod', bundlePath: '/b/pod', daemonAddress: '/daemon' };
    const common = ['-namespace', 'k8s.io', '-address', '/daemon', '-publish-binary', 'scribe', '-id', 'pod'];
    assert.deepEqual(shimArguments({ ...invocation, action: 'start' }), [...common, 'start']);
    assert.deepEqual(shimArguments({ ...invocation, action: 'delete' }), [...common, '-bundle', '/b/pod', 'delete']);
    assert.deepEqual(shimEnvironment('/events', '/daemon', { PATH: '/bin' }), {
      PATH: '/bin',
      TTRPC_ADDRESS: '/events',
      GRPC_ADDRESS: '/daemon',
      NAMESPACE: 'k8s.io',
      MAX_SHIM_VERSION: '2',
      GOMAXPROCS: '2',
    });
  });
});

describe('what start prints', () => {
  it('is understood in all three forms', () => {
    const protobuf = BootstrapResult.encode(
      BootstrapResult.fromPartial({ version: 3, address, protocol: 'ttrpc' }),
    ).finish();
    assert.deepEqual(parseStartOutput(protobuf), { address, taskApi: 3 });
    assert.deepEqual(parseStartOutput(text(JSON.stringify({ version: 3, address, protocol: 'ttrpc' }))), {
      address,
      taskApi: 3,
    });
    assert.deepEqual(parseStartOutput(text(JSON.stringify({ version: 2, address, protocol: 'ttrpc' }))), {
      address,
      taskApi: 2,
    });
    assert.deepEqual(parseStartOutput(text(address)), { address, taskApi: 2 });
    assert.deepEqual(parseStartOutput(text(`${address}\n`)), { address, taskApi: 2 });
  });
  it('is refused when scribe cannot speak to such a shim', () => {
    const json = (value: object): Uint8Array =>
      text(JSON.stringify({ address, version: 3, protocol: 'ttrpc', ...value }));
    assert.throws(() => parseStartOutput(json({ protocol: 'grpc' })), /speaks "grpc"/);
    assert.throws(() => parseStartOutput(json({ version: 4 })), /version 4/);
    assert.throws(() => parseStartOutput(json({ address: 'vsock://3:1024' })), /no unix socket/);
    assert.throws(() => parseStartOutput(text('')), /no unix socket/);
    assert.throws(() => parseStartOutput(text('panic: something broke\ngoroutine 1')), /no unix socket/);
  });
  it('never does worse than to fail, whatever it is', () => {
    const anything = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.json().map(text), fc.string().map(text));
    fc.assert(
      fc.property(anything, (bytes) => {
        try {
          assert.ok([2, 3].includes(parseStartOutput(bytes).taskApi));
        } catch (error) {
          assert.ok(error instanceof FailureError, String(error));
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('the address of a shim', () => {
  it('is a path, or an abstract name without a scheme', () => {
    assert.equal(socketPathOf(address), '/run/containerd/s/9a3f');
    assert.equal(socketPathOf('/containerd-shim/abc.sock'), '\0/containerd-shim/abc.sock');
    for (const wrong of ['unix://relative', 'tcp://1.2.3.4:5', 'a b', '', 'unix:///a\0b']) {
      assert.throws(() => socketPathOf(wrong), { name: 'FailureError' });
    }
  });
});
