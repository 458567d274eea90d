/** Classes of RDT and block I/O: who puts a container in one, what that changes, and when it is refused. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseBlockIOClasses } from '../../../../src/domain/oci/classes/blockio-file.ts';
import { classOf } from '../../../../src/domain/oci/classes/names.ts';
import type { BlockIOFact } from '../../../../src/domain/model/classes.ts';
import { FailureError } from '../../../../src/domain/model/errors.ts';
import { containerQuestions, containerSpec } from '../../../../src/domain/oci/container-spec.ts';
import type { ContainerSpecInput } from '../../../../src/domain/oci/input.ts';
import { buildContainer, containerInput, failureIn, nodeV2, podConfig, rootFacts, settings } from '../support.ts';

const RDT = 'io.kubernetes.cri.rdt-class';
const BLOCK_IO = 'io.kubernetes.cri.blockio-class';
const withResctrl = { node: { ...nodeV2, resctrl: true } };

describe('the class of a container', () => {
  const pod = {
    ...podConfig,
    annotations: {
      'rdt.resources.beta.kubernetes.io/pod': 'of-pod',
      'rdt.resources.beta.kubernetes.io/container.main': 'of-main',
      'blockio.resources.beta.kubernetes.io/pod': 'slow',
    },
  };
  const rdtOf = (name: string, annotations: Readonly<Record<string, string>> = {}): string | undefined =>
    classOf('rdt', { metadata: { name }, annotations }, pod)?.name;

  it('is that of its own annotation, of one of its pod by its name, or of its pod', () => {
    assert.deepEqual(
      [rdtOf('main', { [RDT]: 'own' }), rdtOf('main'), rdtOf('other'), rdtOf('main', { [RDT]: '' })],
      ['own', 'of-main', 'of-pod', undefined],
    );
    assert.equal(classOf('blockIO', { metadata: { name: 'main' } }, pod)?.name, 'slow');
    assert.equal(classOf('rdt', {}, podConfig), null);
    assert.equal(classOf('rdt', { metadata: { name: 'x' } }, { annotations: {} }), null);
  });

  it('of block I/O is asked about, that of RDT is not', () => {
    const questions = (annotations: Readonly<Record<string, string>>) =>
      containerQuestions({
        config: { annotations },
        imageConfig: {},
        chainIds: [],
        sandboxConfig: podConfig,
        node: nodeV2,
      });
    assert.equal(questions({ [BLOCK_IO]: 'fast' }).blockIOClass, 'fast');
    assert.equal('blockIOClass' in questions({ [RDT]: 'gold' }), false);
  });
});

describe('a class of RDT', () => {
  const config = (name: string) => ({ annotations: { [RDT]: name } });
  const refusal = (name: string, overrides: Partial<ContainerSpecInput> = {}) =>
    failureIn(containerSpec(containerInput(config(name), overrides)));

  it('is the directory of resctrl that the container is put in', () => {
    assert.deepEqual(buildContainer(config('gold'), withResctrl).linux.intelRdt, { closID: 'gold' });
    assert.deepEqual(buildContainer(config('system/default'), withResctrl).linux.intelRdt, { closID: '/' });
    const facts = { ...rootFacts, cdi: [{ intelRdt: { closID: 'of-a-device', memBwSchema: 'MB:0=1' } }] };
    assert.deepEqual(buildContainer(config('gold'), { ...withResctrl, facts }).linux.intelRdt, { closID: 'gold' });
  });

  it('can leave it nowhere else', () => {
    for (const name of ['../x', '..', 'a/b', 'x'.repeat(300), 'a\nb']) {
      const { reason, message } = refusal(name, withResctrl);
      assert.equal(reason, 'InvalidField');
      assert.match(message, /^annotations\["io\.kubernetes\.cri\.rdt-class"\] is ".*: it must be the name of a class$/);
    }
  });

  it('is refused on a node without resctrl, or left out where that is configured', () => {
    const { reason, message } = refusal('gold');
    assert.equal(reason, 'HostLacks');
    assert.match(message, /the class "gold" of RDT, which is not enabled .*runtime\.ignore_rdt_not_enabled_errors/);
    const ignoring = { settings: { ...settings, ignoreRdtNotEnabledErrors: true } };
    assert.equal(buildContainer(config('gold'), ignoring).linux.intelRdt, undefined);
  });
});

describe('a class of block I/O', () => {
  const config = { annotations: { [BLOCK_IO]: 'slow' } };
  const [sda, sdb] = [
    { major: 8, minor: 0 },
    { major: 8, minor: 16 },
  ];

  it('limits the devices that it names; what is said last of a device counts', () => {
    const blockIO: readonly BlockIOFact[] = [
      { devices: null, weight: 80 },
      { devices: [sda, sdb], weight: 50, throttleReadBps: 1000, throttleWriteIOPS: 5 },
      { devices: [sdb], throttleReadBps: 0, throttleWriteBps: 7, throttleReadIOPS: 9 },
      { devices: null, weight: 90 },
    ];
    assert.deepEqual(buildContainer(config, { facts: { ...rootFacts, blockIO } }).linux.resources.blockIO, {
      weight: 90,
      weightDevice: [
        { ...sda, weight: 50 },
        { ...sdb, weight: 50 },
      ],
      throttleReadBpsDevice: [
        { ...sda, rate: 1000 },
        { ...sdb, rate: 0 },
      ],
      throttleWriteBpsDevice: [{ ...sdb, rate: 7 }],
      throttleReadIOPSDevice: [{ ...sdb, rate: 9 }],
      throttleWriteIOPSDevice: [
        { ...sda, rate: 5 },
        { ...sdb, rate: 5 },
      ],
    });
    assert.deepEqual(buildContainer(config, { facts: { ...rootFacts, blockIO: [] } }).linux.resources.blockIO, {});
  });

  it('is refused where no classes are configured, or left out where that is configured', () => {
    const { reason, message } = failureIn(containerSpec(containerInput(config)));
    assert.equal(reason, 'HostLacks');
    assert.match(
      message,
      /the class "slow" of block I\/O, but no classes are configured: .*runtime\.blockio_config_file/,
    );
    const ignoring = { settings: { ...settings, ignoreBlockIONotEnabledErrors: true } };
    assert.equal(buildContainer(config, ignoring).linux.resources.blockIO, undefined);
  });
});

describe('a file of block I/O classes', () => {
  const parse = (content: unknown) => parseBlockIOClasses(content, '/etc/blockio.yaml');

  it('has classes with quantities as Kubernetes writes them', () => {
    const Classes = {
      slow: [
        { Weight: 80 },
        { Devices: ['/dev/sd[a-z]'], ThrottleReadBps: '50M', ThrottleWriteBps: '1.5Ki', ThrottleReadIOPS: '10k' },
        { Devices: ['/dev/vda'], Weight: '10', ThrottleWriteIOPS: 0, ThrottleReadBps: null },
      ],
      none: [],
    };
    assert.deepEqual(parse({ Classes }), {
      slow: [
        { weight: 80 },
        { devices: ['/dev/sd[a-z]'], throttleReadBps: 50_000_000, throttleWriteBps: 1536, throttleReadIOPS: 10_000 },
        { devices: ['/dev/vda'], weight: 10, throttleWriteIOPS: 0 },
      ],
      none: [],
    });
    assert.deepEqual([parse({}), parse({ Classes: null })], [{}, {}]);
  });

  const refusals: readonly (readonly [string, unknown, RegExp])[] = [
    ['that is no object', null, /: it must be an object$/],
    ['with an unknown field', { Class: {} }, /it has a field "Class" that is not known/],
    ['with a class that is no list', { Classes: { a: {} } }, /Classes\.a must be a list/],
    ['with an unknown parameter', { Classes: { a: [{ Bps: 1 }] } }, /Classes\.a\[0\] has a field "Bps"/],
    ['with too small a weight', { Classes: { a: [{ Weight: 9 }] } }, /Weight must be a number from 10 to 1000/],
    ['with too large a weight', { Classes: { a: [{ Weight: '1k1' }] } }, /Weight must be a number/],
    [
      'with a rate that is none',
      { Classes: { a: [{ Devices: [], ThrottleReadBps: '5 MB' }] } },
      /ThrottleReadBps must be/,
    ],
    ['with a negative rate', { Classes: { a: [{ Devices: [], ThrottleReadBps: -1 }] } }, /ThrottleReadBps must be/],
    [
      'with more than is exact',
      { Classes: { a: [{ Devices: [], ThrottleReadBps: '9E' }] } },
      /ThrottleReadBps must be/,
    ],
    ['with a relative device', { Classes: { a: [{ Devices: ['sda'] }] } }, /Devices\[0\] must be an absolute path/],
    ['that throttles nothing', { Classes: { a: [{ ThrottleReadBps: 1 }] } }, /throttles without Devices/],
  ];
  for (const [what, content, problem] of refusals)
    it(`${what} is refused`, () => {
      assert.throws(
        () => parse(content),
        (error) => {
          assert.ok(error instanceof FailureError);
          assert.match(error.message, /^the block I\/O classes in \/etc\/blockio\.yaml: /);
          assert.match(error.message, problem);
          return true;
        },
      );
    });
});
