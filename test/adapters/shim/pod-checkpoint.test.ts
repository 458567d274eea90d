/** Freezing the containers of a pod together for its checkpoint, when one of them cannot be. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whileFrozen } from '../../../src/adapters/shim/pod-checkpoint.ts';

describe('containers that are frozen together', { timeout: 20_000 }, () => {
  it('are thawed once all have been frozen, though one could not be', async () => {
    const said: string[] = [];
    const { promise: slowly, resolve: freezeSlow } = Promise.withResolvers<void>();
    const freeze = async (name: string): Promise<void> => {
      if (name === 'bad') throw new Error('ENODEV');
      await slowly;
      said.push(`${name} is frozen`);
    };
    const thaw = async (name: string): Promise<void> => void said.push(`${name} is thawed`);
    const work = async (): Promise<void> => void said.push('collected');
    const ended = assert.rejects(whileFrozen(['bad', 'slow'], { freeze, thaw }, work), /ENODEV/);
    await new Promise((resolve) => setImmediate(resolve));
    freezeSlow();
    await ended;
    assert.deepEqual(said, ['slow is frozen', 'bad is thawed', 'slow is thawed']);
  });

  it('are thawed when what was to be done while they were has failed', async () => {
    const said: string[] = [];
    const say = (what: string) => async (name: string) => void said.push(`${name} ${what}`);
    const work = (): Promise<void> => Promise.reject(new Error('no CRIU'));
    const steps = { freeze: say('frozen'), thaw: say('thawed') };
    await assert.rejects(whileFrozen(['one', 'other'], steps, work), /no CRIU/);
    assert.deepEqual(said, ['one frozen', 'other frozen', 'one thawed', 'other thawed']);
  });
});
