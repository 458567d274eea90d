/** Requests that are refused before anybody decides: the code, the words, the record, and that nothing changed. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER } from 'rxjs';
import { imagesService } from '../../../src/adapters/cri/services/scribe-images.ts';
import { serviceOf } from '../../../src/adapters/cri/service.ts';
import { ImageServiceDefinition, RuntimeServiceDefinition } from '../../../src/wire/cri/api.ts';
import { ImagesDefinition, PullRequest } from '../../../src/wire/scribe/v1/images.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { writeState } from '../../../src/domain/turn/snapshot.ts';
import { codeOf } from '../../../scripts/lib/cri-client.ts';
import { rawClient, startEngine, startServer } from './support.ts';

const detailsOf = (error: unknown): string => (error as { details?: string }).details ?? '';

describe('refusals before a decision', { timeout: 20_000 }, () => {
  it('C10: a bad request gets the right code, names the field, is journaled, and changes nothing', async (t) => {
    const { engine, view, recorded } = await startEngine(t);
    const { cri } = await startServer(t, { view, submit: engine.call });
    const { runtime, image } = cri;
    const before = writeState(engine.state);
    const nul = { envs: [{ key: 'A', value: Buffer.from('a\0b') }] };
    const bad: readonly (readonly [rpc: string, field: RegExp, call: () => Promise<unknown>])[] = [
      ['RunPodSandbox', /^config is missing/, () => runtime.runPodSandbox({})],
      ['CreateContainer', /^config is missing/, () => runtime.createContainer({ podSandboxId: 'x' })],
      ['CreateContainer', /^envs\["A"\]\.value/, () => runtime.createContainer({ podSandboxId: 'x', config: nul })],
      ['PullImage', /^image\.image is empty/, () => image.pullImage({ image: { image: '' } })],
      ['RemoveImage', /^image\.image is empty/, () => image.removeImage({})],
    ];
    for (const [rpc, field, call] of bad) {
      await assert.rejects(call(), (error) => {
        assert.equal(codeOf(error), GrpcCode.INVALID_ARGUMENT, rpc);
        assert.match(detailsOf(error), field);
        return true;
      });
    }
    assert.equal(writeState(engine.state), before);
    const received = recorded('call.received');
    assert.equal(received.length, bad.length);
    for (const [index, { request, caller }] of received.entries()) {
      const [rpc, field] = bad[index] ?? [];
      assert.ok(request.method === 'Refused' && request.rpc === rpc && field?.test(request.failure.message) === true);
      assert.equal(caller?.pid, process.pid);
    }
    for (const { method, code, failure } of recorded('call.completed')) {
      assert.equal(method, 'Refused');
      assert.equal(code, GrpcCode.INVALID_ARGUMENT);
      assert.equal(failure?.reason, 'InvalidField');
    }
    assert.equal(recorded('call.completed').length, bad.length);
  });

  it('C10: what the domain refuses is journaled as the call it is', async (t) => {
    const { engine, view, recorded } = await startEngine(t);
    const { cri } = await startServer(t, { view, submit: engine.call });
    await assert.rejects(cri.runtime.startContainer({ containerId: 'none' }), (error) => codeOf(error) === 5);
    await assert.rejects(cri.image.pullImage({ image: { image: 'a//b' } }), (error) => codeOf(error) === 3);
    await assert.rejects(
      cri.runtime.runPodSandbox({
        config: { metadata: { name: 'a', uid: 'u', namespace: 'n' } },
        runtimeHandler: 'no',
      }),
      (error) => codeOf(error) === GrpcCode.INVALID_ARGUMENT,
    );
    assert.deepEqual(
      recorded('call.completed').map(({ method, code }) => [method, code]),
      [
        ['StartContainer', 5],
        ['PullImage', 3],
        ['RunPodSandbox', 3],
      ],
    );
    assert.equal(engine.state.sandboxes.size + engine.state.containers.size + engine.state.images.size, 0);
  });

  it('C10: RPCs that are not offered answer Unimplemented and are journaled', async (t) => {
    const { engine, view, recorded } = await startEngine(t);
    // As a contract is whose newest methods nobody handles yet.
    const { socket } = await startServer(t, {
      view,
      submit: engine.call,
      services: (_parts, options) => [serviceOf(ImagesDefinition, {}, options)],
    });
    const client = rawClient(t, socket);
    const { code, details } = await client.call(`/${ImagesDefinition.fullName}/${ImagesDefinition.methods.pull.name}`);
    assert.equal(code, GrpcCode.UNIMPLEMENTED);
    assert.match(details, /Pull is not offered/);
    const rpcs = recorded('call.received').map(({ request }) =>
      request.method === 'Unimplemented' ? request.rpc : '',
    );
    assert.deepEqual(rpcs, ['Pull']);
    const unknown = await client.call('/runtime.v1.RuntimeService/NoSuchThing');
    assert.equal(unknown.code, GrpcCode.UNIMPLEMENTED);
  });

  it('every method of the contract is served', async (t) => {
    const { engine, view } = await startEngine(t);
    const { socket } = await startServer(t, { view, submit: engine.call });
    const client = rawClient(t, socket);
    for (const { fullName, methods } of [RuntimeServiceDefinition, ImageServiceDefinition]) {
      for (const { name, responseStream } of Object.values<{ readonly name: string; readonly responseStream: boolean }>(
        methods,
      )) {
        if (responseStream) continue;
        const { code, details } = await client.call(`/${fullName}/${name}`);
        assert.doesNotMatch(details, /does not implement/, name);
        assert.notEqual(code, GrpcCode.INTERNAL, `${name}: ${details}`);
      }
    }
  });

  it("scribe's own pull refuses a malformed reference before it keeps credentials", async (t) => {
    const { engine, view, recorded } = await startEngine(t);
    let kept = 0;
    const transfers = {
      newUploadId: () => 'upload',
      acceptUpload: () => undefined,
      forgetUpload: () => undefined,
      progress: NEVER,
    };
    const { socket } = await startServer(t, {
      view,
      submit: engine.call,
      parts: { keepCredentials: () => `c${(kept += 1)}` },
      services: (parts, options) => [serviceOf(ImagesDefinition, imagesService(parts, transfers), options)],
    });
    const request = PullRequest.fromPartial({ image: 'a/../b', username: 'u', password: 'secret' });
    const path = `/${ImagesDefinition.fullName}/${ImagesDefinition.methods.pull.name}`;
    const { code, details } = await rawClient(t, socket).call(path, PullRequest.encode(request).finish());
    assert.equal(code, GrpcCode.INVALID_ARGUMENT);
    assert.match(details, /^image: /);
    assert.equal(kept, 0);
    assert.deepEqual(
      recorded('call.received').map(({ request: { method } }) => method),
      ['Refused'],
    );
  });
});
