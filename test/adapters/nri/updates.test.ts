/** Updates and evictions that plugins ask for by themselves: taken one after the other, answered, bounded. */
import assert from 'node:assert/strict';
import { before, describe, it, type TestContext } from 'node:test';
import { FailureError, GrpcCode } from '../../../src/domain/model/errors.ts';
import type { TakeNriUpdates } from '../../../src/adapters/nri/plugins.ts';
import { ContainerUpdate, type UpdateContainersRequest } from '../../../src/wire/nri/api.ts';
import { requireRoot } from '../../support/netns.ts';
import { startTested, type TestedPlugins } from './adaptation.ts';
import { connectDouble, type PluginDouble } from './plugin-double.ts';

const updateOf = (containerId: string): ContainerUpdate => ContainerUpdate.fromPartial({ containerId });
const request = (...ids: string[]): UpdateContainersRequest => ({ update: ids.map(updateOf), evict: [] });

const start = async (
  t: TestContext,
  takeUpdates: TakeNriUpdates,
): Promise<{ nri: TestedPlugins; double: PluginDouble; id: string }> => {
  const nri = await startTested(t, { takeUpdates });
  const double = await connectDouble(t, nri.settings.socketPath);
  await double.register();
  return { nri, double, id: (await nri.registered('double')).id };
};

before(requireRoot);

describe('what a plugin asks for by itself', { timeout: 60_000 }, () => {
  it('is told with its evictions, and what failed is answered', async (t) => {
    const { nri, double, id } = await start(t, async ({ update }) => update.filter((one) => one.containerId === 'bad'));
    const evict = [{ containerId: 'c', reason: 'it is in the way' }];
    const { failed } = await double.update({ ...request('good', 'bad'), evict });
    assert.deepEqual(
      failed.map(({ containerId }) => containerId),
      ['bad'],
    );
    assert.deepEqual(nri.asked, [{ pluginId: id, update: ['good', 'bad'].map(updateOf), evict }]);
  });

  it('fails with the code of its failure', async (t) => {
    const { double } = await start(t, () => Promise.reject(new FailureError('NotServing', 'not yet')));
    await assert.rejects(double.update(request('c')), { code: GrpcCode.UNAVAILABLE, message: 'not yet' });
  });

  it('is not taken from whom nobody knows', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath);
    await assert.rejects(double.update(request('c')), { code: GrpcCode.FAILED_PRECONDITION });
    assert.deepEqual(nri.asked, []);
  });

  it('is taken while the plugin is being asked: neither waits for the other', async (t) => {
    const { nri, double, id } = await start(t, async () => []);
    const asking = await connectDouble(t, nri.settings.socketPath, {
      name: 'asking',
      handlers: {
        RunPodSandbox: async () => {
          await asking.update(request('c'));
          await double.update(request('d'));
          return new Uint8Array();
        },
      },
    });
    await asking.register();
    const plugin = await nri.registered('asking');
    await nri.synchronize(plugin.id, [], []);
    assert.ok((await nri.ask(plugin.id, 'RunPodSandbox', { pod: undefined })).ok);
    assert.deepEqual(
      nri.asked.map(({ pluginId }) => pluginId),
      [plugin.id, id],
    );
  });

  it('is taken one after the other, and a flood is refused while others are served', async (t) => {
    const { promise: gate, resolve: open } = Promise.withResolvers<undefined>();
    const { nri, double } = await start(t, async ({ update }) => {
      if (update[0]?.containerId.startsWith('flood') === true) await gate;
      return [];
    });
    const flood = Array.from({ length: 1_000 }, (_, n) =>
      double.update(request(`flood-${n}`)).then(
        () => GrpcCode.OK,
        (error: { readonly code: number }) => error.code,
      ),
    );
    const other = await connectDouble(t, nri.settings.socketPath, { name: 'other' });
    await other.register();
    await nri.registered('other');
    await other.update(request('calm'));
    assert.deepEqual(
      nri.asked.map(({ update }) => update[0]?.containerId),
      ['flood-0', 'calm'],
    );
    open(undefined);
    const codes = await Promise.all(flood);
    const taken = codes.filter((code) => code === GrpcCode.OK).length;
    assert.equal(nri.asked.length, taken + 1);
    assert.equal(codes.filter((code) => code === GrpcCode.RESOURCE_EXHAUSTED).length, 1_000 - taken);
    assert.ok(taken >= 256 && taken < 900, `${taken} were taken`);
  });

  it('waits in bounded memory', async (t) => {
    const { promise: gate, resolve: open } = Promise.withResolvers<undefined>();
    const { double } = await start(t, async () => {
      await gate;
      return [];
    });
    const big = request('x'.repeat(3_500_000));
    const codes = Array.from({ length: 8 }, () =>
      double.update(big).then(
        () => GrpcCode.OK,
        (error: { readonly code: number }) => error.code,
      ),
    );
    assert.equal(await Promise.race(codes), GrpcCode.RESOURCE_EXHAUSTED);
    open(undefined);
    const taken = (await Promise.all(codes)).filter((code) => code === GrpcCode.OK).length;
    assert.ok(taken >= 5 && taken < codes.length, `${taken} were taken`);
  });

  it('is refused where it is more than anybody has containers', async (t) => {
    const { nri, double } = await start(t, async () => []);
    const many = request(...Array.from({ length: 10_001 }, () => 'c'));
    await assert.rejects(double.update(many), { code: GrpcCode.RESOURCE_EXHAUSTED });
    assert.deepEqual(nri.asked, []);
  });
});
