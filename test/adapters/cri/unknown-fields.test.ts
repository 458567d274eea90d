/** Fields of a later contract: told of everywhere, kept where no secret of today is beside them, shown in a history. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { BESIDE_SECRETS, unknownFieldsIn } from '../../../src/adapters/cri/messages/unknown-fields.ts';
import { bodyAt } from '../../../src/cli/export/level.ts';
import { unknownWords } from '../../../src/cli/history/words.ts';
import { shownRecord } from '../../../src/cli/ui/redact.ts';
import type { UnknownField } from '../../../src/domain/model/unknown-fields.ts';
import type { JournalRecord } from '../../../src/journal/types.ts';
import {
  AttachRequest,
  CreateContainerRequest,
  ExecRequest,
  ExecSyncRequest,
  LinuxPodSandboxConfig,
  ListContainersRequest,
  NamespaceMode,
  PodSandboxConfig,
  PullImageRequest,
} from '../../../src/wire/cri/api.ts';
import { fields } from '../../../src/wire/fields.ts';
import { searcherFor } from '../../support/canaries.ts';
import { rawClient, startEngine, startServer } from './support.ts';

const pathOf = (method: string): string => `/runtime.v1.RuntimeService/${method}`;
const unknownOf = (method: string, ...parts: Uint8Array[]) => unknownFieldsIn(pathOf(method))(Buffer.concat(parts));

const textField = (number: number, text: string): Uint8Array => new BinaryWriter().tag(number, 2).string(text).finish();
/** A message within another, by its number there. */
const within = (number: number, ...inner: Uint8Array[]): Uint8Array =>
  new BinaryWriter().tag(number, 2).bytes(Buffer.concat(inner)).finish();
const textOf = (field: string, text: string): UnknownField => ({ field, bytes: text.length, text, wireType: 2 });

const exec = ExecRequest.encode(ExecRequest.fromPartial({ containerId: 'c', cmd: ['sh'], stdout: true })).finish();
const DEADLINE = { timeout: 20_000 };
const AUDIT_ID = '7d2b0c1e-1c7c-4d0b-9c57-6f0f1c8f2a11';
const SECRET = 'canary-5c1f6e7a90';
const MB = 1024 * 1024;

/** RunPodSandbox of a pod on the host's network, with these fields in its config and in `linux` there. */
const podNamed = (name: string, inConfig: readonly Uint8Array[] = [], inLinux: readonly Uint8Array[] = []) => {
  const linux = { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } };
  return within(
    1,
    PodSandboxConfig.encode(
      PodSandboxConfig.fromPartial({ metadata: { name, uid: name, namespace: 'default' } }),
    ).finish(),
    within(8, LinuxPodSandboxConfig.encode(LinuxPodSandboxConfig.fromPartial(linux)).finish(), ...inLinux),
    ...inConfig,
  );
};
/** A later contract's: in the request itself, in its config, and in a message of that. */
const inPod = [podNamed('one', [textField(91, 'in-config')], [textField(92, 'in-linux')]), textField(90, 'its own')];
const IN_POD = [textOf('config.linux.92', 'in-linux'), textOf('config.91', 'in-config'), textOf('90', 'its own')];

describe('unknown fields', () => {
  it('are none in what the contract knows', () => {
    assert.deepEqual(unknownOf('Exec', exec), []);
    const whole = CreateContainerRequest.fromPartial({
      podSandboxId: 'p',
      config: { metadata: { name: 'n' }, labels: { a: 'b' }, linux: { resources: { unified: { a: 'b' } } } },
    });
    assert.deepEqual(unknownOf('CreateContainer', CreateContainerRequest.encode(whole).finish()), []);
    assert.deepEqual(unknownFieldsIn('/another.Service/Method')(textField(1, 'x')), []);
  });

  it('keep their values as text, number or bytes, so that a later contract reads what was sent', () => {
    const sent = [
      textField(7, AUDIT_ID),
      new BinaryWriter().tag(9, 0).uint64('18446744073709551615').finish(),
      new BinaryWriter().tag(10, 5).fixed32(4_294_967_295).finish(),
      new BinaryWriter().tag(12, 1).fixed64('18446744073709551614').finish(),
      new BinaryWriter().tag(11, 2).bytes(Buffer.of(0, 255)).finish(),
      textField(13, ''),
    ];
    const found = unknownOf('Exec', exec, ...sent);
    assert.deepEqual(found, [
      textOf('7', AUDIT_ID),
      { field: '9', bytes: 10, text: '18446744073709551615', wireType: 0 },
      { field: '10', bytes: 4, text: '4294967295', wireType: 5 },
      { field: '12', bytes: 8, text: '18446744073709551614', wireType: 1 },
      { field: '11', bytes: 2, base64: 'AP8=', wireType: 2 },
      textOf('13', ''),
    ]);
    assert.deepEqual(Buffer.concat(found.map(sentAs)), Buffer.concat(sent));
    const attach = AttachRequest.encode(AttachRequest.fromPartial({ containerId: 'c' })).finish();
    assert.equal(unknownOf('Attach', attach, textField(6, AUDIT_ID))[0]?.text, AUDIT_ID);
  });

  it('are bounded: each value, all of a request, and how many are told of', () => {
    assert.deepEqual(unknownOf('Exec', exec, textField(7, 'x'.repeat(4097))), [{ field: '7', bytes: 4097 }]);
    const large = Array.from({ length: 6 }, () => textField(7, 'x'.repeat(4096)));
    assert.deepEqual(
      unknownOf('Exec', ...large, textField(8, 'y')).map(({ text }) => text?.length),
      [4096, 4096, 4096, 4096, undefined, undefined, undefined],
    );
    assert.equal(unknownOf('Exec', ...Array.from({ length: 100 }, () => textField(7, 'x'))).length, 16);
    const group = Buffer.concat([Buffer.of(7 * 8 + 3), textField(1, 'x'), Buffer.of(7 * 8 + 4)]);
    assert.deepEqual(unknownOf('Exec', group, textField(8, 'y')), [{ field: '7', bytes: 4 }, textOf('8', 'y')]);
  });

  it('C12: are kept neither in messages that hold secrets of today nor beside those', () => {
    const secrets = ['runtime.v1.AuthConfig', 'runtime.v1.KeyValue'];
    const holders = Object.entries(fields)
      .filter(([, known]) => Object.values(known).some(([, inner]) => secrets.includes(inner ?? '')))
      .map(([type]) => type);
    assert.deepEqual(new Set([...secrets, ...holders, 'runtime.v1.ExecSyncRequest']), BESIDE_SECRETS);
    assert.deepEqual(
      unknownOf('ExecSync', ExecSyncRequest.encode(ExecSyncRequest.create()).finish(), textField(9, SECRET)),
      [{ field: '9', bytes: SECRET.length }],
    );
  });
});

/** The field as it was in the request. */
const sentAs = ({ field, text = '', base64, wireType = 2 }: UnknownField): Uint8Array => {
  const writer = new BinaryWriter().tag(Number(field.split('.').at(-1)), wireType);
  if (wireType === 0) return writer.uint64(text).finish();
  if (wireType === 1) return writer.fixed64(text).finish();
  if (wireType === 5) return writer.fixed32(Number(text)).finish();
  return writer.bytes(base64 === undefined ? Buffer.from(text) : Buffer.from(base64, 'base64')).finish();
};

describe('unknown fields of a call', () => {
  it('are recorded, at its top and within, a megabyte of them by its size', async (t) => {
    const { engine, recorded } = await startEngine(t);
    const server = await startServer(t, { submit: engine.call });
    const client = rawClient(t, server.socket);
    const unknownIn = () => recorded('call.received').map(({ unknownFields }) => unknownFields);

    await client.call(pathOf('Exec'), Buffer.concat([exec, textField(7, AUDIT_ID)]));
    await client.call(pathOf('Exec'), exec);
    const huge = podNamed('huge', [textField(91, 'y'.repeat(MB)), textField(93, 'small')]);
    await client.call(pathOf('RunPodSandbox'), Buffer.concat([huge, textField(7, 'x'.repeat(MB))]));
    assert.deepEqual(unknownIn(), [
      [textOf('7', AUDIT_ID)],
      undefined,
      [{ field: 'config.91', bytes: MB }, textOf('config.93', 'small'), { field: '7', bytes: MB }],
    ]);
  });

  it(
    'do not make another request of one: a retry with others joins it, and its effects are the same',
    DEADLINE,
    async (t) => {
      const prepared: unknown[] = [];
      const { promise: begun, resolve: begin } = Promise.withResolvers<undefined>();
      const { promise: over, resolve: end } = Promise.withResolvers<undefined>();
      const { engine, recorded } = await startEngine(t, {
        PreparePodSandbox: async (effect) => {
          prepared.push(effect);
          begin(undefined);
          await over;
          throw new Error('as this test has it');
        },
      });
      const server = await startServer(t, { submit: engine.call });
      const client = rawClient(t, server.socket);
      const first = client.call(pathOf('RunPodSandbox'), Buffer.concat(inPod));
      await begun;
      const second = client.call(pathOf('RunPodSandbox'), Buffer.concat([podNamed('one'), textField(90, 'other')]));
      while (recorded('call.received').length < 2) await setImmediate();
      end(undefined);
      assert.deepEqual((await first).code, (await second).code);
      assert.deepEqual(
        recorded('call.received').map(({ unknownFields }) => unknownFields),
        [IN_POD, [textOf('90', 'other')]],
      );
      assert.equal(prepared.length, 1);
      assert.doesNotMatch(JSON.stringify(prepared), /its own|in-config|in-linux/);
    },
  );

  it('C12: are only told of where one may be a secret', async (t) => {
    const inConfig = within(
      2,
      within(15, textField(99, 'not secret')),
      textField(98, SECRET),
      within(6, textField(96, SECRET)),
    );
    const create = CreateContainerRequest.encode(CreateContainerRequest.fromPartial({ podSandboxId: 'p' })).finish();
    const pull = PullImageRequest.encode(PullImageRequest.fromPartial({ image: { image: 'busybox' } })).finish();
    const { engine, recorded, journal } = await startEngine(t);
    const server = await startServer(t, { submit: engine.call });
    const client = rawClient(t, server.socket);
    await client.call(
      '/runtime.v1.ImageService/PullImage',
      Buffer.concat([pull, within(2, textField(77, SECRET)), textField(78, SECRET)]),
    );
    await client.call(pathOf('CreateContainer'), Buffer.concat([create, inConfig]));
    const bytes = SECRET.length;
    assert.deepEqual(
      recorded('call.received').map(({ unknownFields }) => unknownFields),
      [
        [
          { field: 'auth.77', bytes },
          { field: '78', bytes },
        ],
        [textOf('config.linux.99', 'not secret'), { field: 'config.98', bytes }, { field: 'config.envs.96', bytes }],
      ],
    );
    assert.deepEqual(searcherFor([{ name: 'field', secret: SECRET }])(JSON.stringify(bodiesIn(journal))), []);
  });

  it('are recorded of reads too, where the audit rules want those', async (t) => {
    const told: unknown[] = [];
    const server = await startServer(t, {
      parts: { noteRead: (_row, _traceParent, details) => void told.push(details().unknownFields) },
    });
    const list = ListContainersRequest.encode(ListContainersRequest.create()).finish();
    await rawClient(t, server.socket).call(pathOf('ListContainers'), Buffer.concat([list, textField(50, 'x')]));
    assert.deepEqual(told, [[textOf('50', 'x')]]);
  });

  it('are shown in a history whole, and by place and size where a level hides what clients chose', async (t) => {
    const unknownFields = [textOf('7', AUDIT_ID), { field: 'config.98', bytes: 20 }];
    assert.equal(unknownWords(unknownFields), `unknown field 7, 36 B: ${AUDIT_ID}, unknown field config.98, 20 B`);
    assert.equal(unknownWords([{ field: '11', bytes: 2, base64: 'AP8=' }]), 'unknown field 11, 2 B: AP8=');
    assert.equal(unknownWords(), '');

    const { engine, journal } = await startEngine(t);
    const server = await startServer(t, { submit: engine.call });
    await rawClient(t, server.socket).call(pathOf('Exec'), Buffer.concat([exec, textField(7, AUDIT_ID)]));
    const [record] = recordsIn(journal).filter(({ type }) => type === 'call.received');
    assert.ok(record);
    const inBody = (body: object): unknown => (body as { unknownFields?: unknown }).unknownFields;
    assert.deepEqual(inBody(bodyAt('metadata', record)), [{ field: '7', bytes: 36 }]);
    assert.deepEqual(inBody(bodyAt('request', record)), [textOf('7', AUDIT_ID)]);
    const onPage = inBody(JSON.parse(shownRecord('metadata', record).body) as object);
    assert.deepEqual(onPage, [{ field: '7', bytes: 36, text: '…', wireType: 2 }]);
  });
});

type Journal = Awaited<ReturnType<typeof startEngine>>['journal'];

const recordsIn = ({ contents }: Journal): JournalRecord[] =>
  contents.rows.map(({ record }) => record).filter((record) => record !== null);

const bodiesIn = (journal: Journal): string[] => recordsIn(journal).map(({ body }) => body);
