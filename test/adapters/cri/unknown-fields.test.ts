/** Fields of a later contract: kept where none can be a secret, told of everywhere else, shown in a history. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { unknownFieldsIn } from '../../../src/adapters/cri/messages/unknown-fields.ts';
import { unknownWords } from '../../../src/cli/history/words.ts';
import { AttachRequest, CreateContainerRequest, ExecRequest, PullImageRequest } from '../../../src/wire/cri/api.ts';
import { searcherFor } from '../../support/canaries.ts';
import { rawClient, startEngine, startServer } from './support.ts';

const pathOf = (method: string): string => `/runtime.v1.RuntimeService/${method}`;
const unknownOf = (method: string, ...parts: Uint8Array[]) => unknownFieldsIn(pathOf(method))(Buffer.concat(parts));

const textField = (number: number, text: string): Uint8Array => new BinaryWriter().tag(number, 2).string(text).finish();
/** A message within another, by its number there. */
const within = (number: number, ...inner: Uint8Array[]): Uint8Array =>
  new BinaryWriter().tag(number, 2).bytes(Buffer.concat(inner)).finish();

const exec = ExecRequest.encode(ExecRequest.fromPartial({ containerId: 'c', cmd: ['sh'], stdout: true })).finish();
const AUDIT_ID = '7d2b0c1e-1c7c-4d0b-9c57-6f0f1c8f2a11';
const SECRET = 'canary-5c1f6e7a90';

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

  it('keep their values in requests that have no room for a secret, as text, number or bytes', () => {
    const number = new BinaryWriter().tag(9, 0).uint64('18446744073709551615').finish();
    const fixed = new BinaryWriter().tag(10, 5).fixed32(1).finish();
    const bytes = new BinaryWriter().tag(11, 2).bytes(Buffer.of(0, 255)).finish();
    assert.deepEqual(unknownOf('Exec', exec, textField(7, AUDIT_ID), number, fixed, bytes), [
      { field: '7', bytes: 36, text: AUDIT_ID },
      { field: '9', bytes: 10, text: '18446744073709551615' },
      { field: '10', bytes: 4 },
      { field: '11', bytes: 2, base64: 'AP8=' },
    ]);
    const attach = AttachRequest.encode(AttachRequest.fromPartial({ containerId: 'c' })).finish();
    assert.equal(unknownOf('Attach', attach, textField(6, AUDIT_ID))[0]?.text, AUDIT_ID);
    assert.deepEqual(unknownOf('Exec', exec, textField(7, 'x'.repeat(257))), [{ field: '7', bytes: 257 }]);
    assert.equal(unknownOf('Exec', ...Array.from({ length: 100 }, () => textField(7, 'x'))).length, 16);
  });

  it('C12: are only told of where one may be a secret', async (t) => {
    const inConfig = within(2, within(15, textField(99, SECRET)), textField(98, SECRET));
    assert.deepEqual(unknownOf('CreateContainer', inConfig, textField(97, SECRET)), [
      { field: 'config.linux.99', bytes: SECRET.length },
      { field: 'config.98', bytes: SECRET.length },
      { field: '97', bytes: SECRET.length },
    ]);
    const pull = PullImageRequest.encode(PullImageRequest.fromPartial({ image: { image: 'busybox' } })).finish();
    const withAuth = Buffer.concat([pull, within(2, textField(77, SECRET))]);
    assert.deepEqual(unknownFieldsIn('/runtime.v1.ImageService/PullImage')(withAuth), [
      { field: 'auth.77', bytes: SECRET.length },
    ]);

    const { engine, recorded, journal } = await startEngine(t);
    const server = await startServer(t, { submit: engine.call });
    const client = rawClient(t, server.socket);
    await client.call('/runtime.v1.ImageService/PullImage', withAuth);
    await client.call(pathOf('Exec'), Buffer.concat([exec, textField(7, AUDIT_ID)]));
    await client.call(pathOf('Exec'), exec);
    assert.deepEqual(
      recorded('call.received').map(({ unknownFields }) => unknownFields),
      [[{ field: 'auth.77', bytes: SECRET.length }], [{ field: '7', bytes: 36, text: AUDIT_ID }], undefined],
    );
    assert.deepEqual(searcherFor([{ name: 'field', secret: SECRET }])(JSON.stringify(bodiesIn(journal))), []);
  });

  it('are shown in a history', () => {
    assert.equal(
      unknownWords([
        { field: '7', bytes: 36, text: AUDIT_ID },
        { field: 'config.98', bytes: 20 },
      ]),
      `unknown field 7: ${AUDIT_ID}, unknown field config.98: 20 B`,
    );
    assert.equal(unknownWords(), '');
  });
});

const bodiesIn = ({ contents }: { readonly contents: { readonly rows: readonly { readonly record: unknown }[] } }) =>
  contents.rows.map(({ record }) => (record as { readonly body: string } | null)?.body ?? '');
