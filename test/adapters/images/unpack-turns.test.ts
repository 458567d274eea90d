/** Whose turn it is to be unpacked: what saves a process comes first, and nobody waits for nothing. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { createTurns } from '../../../src/adapters/images/unpack/turns.ts';

/** Layers by names such as A2: the third of image A. One of an image in lower case is quick, a on a base that others have. */
const placeOf = (name: string) => {
  const chain = Array.from({ length: Number(name.slice(1)) + 1 }, (_, index) =>
    index === 0 && /[a-z]/.test(name) ? 'base' : `${name[0]}${index}`,
  );
  return { chainId: chain.at(-1) ?? '', below: chain.slice(0, -1), isQuick: /[a-z]/.test(name) };
};

const scene = (room: number) => {
  const turns = createTurns(room);
  const running = new Map<string, () => void>();
  const never = new AbortController().signal;
  const ask = (name: string, ready: Promise<unknown> | null = null, signal = never): Promise<void> =>
    turns.inTurn({ signal, place: placeOf(name), ready }, async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      running.set(name, resolve);
      await promise;
      running.delete(name);
    });
  /** Ends the layer's turn: who is at it then. */
  const after = async (name: string): Promise<string[]> => {
    running.get(name)?.();
    await nextTurn();
    return [...running.keys()];
  };
  const now = async (): Promise<string[]> => after('nobody');
  return { turns, ask, after, now };
};

describe('turns to unpack', () => {
  it('go to one layer of each image first, and on to the one above it', async () => {
    const { ask, after, now } = scene(2);
    for (const name of ['A0', 'A1', 'B0', 'B1', 'C0']) void ask(name);
    assert.deepEqual(await now(), ['A0', 'A1']);
    assert.deepEqual(await after('A1'), ['A0', 'B0']);
    assert.deepEqual(await after('B0'), ['A0', 'B1']);
    assert.deepEqual(await after('A0'), ['B1', 'C0']);
  });

  it('go to several layers of an image when there is no other', async () => {
    const { ask, after, now } = scene(2);
    for (const name of ['A0', 'A1', 'A2', 'A3']) void ask(name);
    assert.deepEqual(await now(), ['A0', 'A1']);
    assert.deepEqual(await after('A1'), ['A0', 'A2']);
    assert.deepEqual(await after('A0'), ['A2', 'A3']);
  });

  it('wait for a layer below that is on its way only while others are at work', async () => {
    const { ask, after, now } = scene(2);
    const arrived = Promise.withResolvers<void>();
    void ask('B0');
    void ask('A0', arrived.promise);
    void ask('A1');
    assert.deepEqual(await now(), ['B0']);
    assert.deepEqual(await after('B0'), ['A1']);
    arrived.resolve();
    assert.deepEqual(await now(), ['A1', 'A0']);
  });

  it('do not come, for layers that take less than a process to start, while another such is below', async () => {
    const { turns, ask, after, now } = scene(3);
    const arrived = Promise.withResolvers<void>();
    const leave = turns.occupy(placeOf('a1'), arrived.promise);
    for (const name of ['a2', 'b1', 'b2', 'A0', 'A1']) void ask(name);
    assert.deepEqual(await now(), ['b1', 'A0', 'A1']);
    assert.deepEqual(await after('A0'), ['b1', 'A1']);
    arrived.resolve();
    assert.deepEqual(await now(), ['b1', 'A1']);
    leave();
    assert.deepEqual(await now(), ['b1', 'A1', 'a2']);
    assert.deepEqual(await after('b1'), ['A1', 'a2', 'b2']);
  });

  it('do not come for such a layer either while one below is awaited, which begins, is there already, or is given up', async () => {
    const { turns, ask, after, now } = scene(2);
    const giveUp = turns.await(['a0', 'a1', 'b1', 'c1'].map(placeOf));
    for (const name of ['a2', 'b2', 'c2']) void ask(name);
    assert.deepEqual(await now(), []);
    void ask('a0');
    assert.deepEqual(await now(), ['a0']);
    void ask('a1');
    assert.deepEqual(await after('a0'), ['a1']);
    turns.forget(placeOf('b1'));
    assert.deepEqual(await now(), ['a1', 'b2']);
    assert.deepEqual(await after('b2'), ['a1']);
    assert.deepEqual(await after('a1'), ['a2']);
    giveUp();
    assert.deepEqual(await now(), ['a2', 'c2']);
  });

  it('come, where one below has begun for another image, as for that: awaiting it again adds nothing', async () => {
    const { turns, ask, after, now } = scene(2);
    void ask('a0');
    assert.deepEqual(await now(), ['a0']);
    void turns.await(['a0'].map(placeOf));
    void ask('a1');
    // Its process waits for the layer above before it is in place.
    assert.deepEqual(await after('a0'), ['a1']);
  });

  it('come to all that waited for one below', async () => {
    const { ask, after, now } = scene(2);
    for (const name of ['a0', 'a1', 'b1']) void ask(name);
    assert.deepEqual(await now(), ['a0']);
    assert.deepEqual(await after('a0'), ['a1', 'b1']);
  });

  it('are not waited for when what arrives below does not come', async () => {
    const { turns, ask, now } = scene(2);
    const leave = turns.occupy(placeOf('a1'), new Promise(() => undefined));
    void ask('a2');
    assert.deepEqual(await now(), []);
    leave();
    assert.deepEqual(await now(), ['a2']);
  });

  it('are taken by who has begun without one, once all has arrived, and given up by who gives up', async () => {
    const { turns, ask, now } = scene(1);
    const arrived = Promise.withResolvers<void>();
    const leave = turns.occupy(placeOf('A0'), arrived.promise);
    arrived.resolve();
    await now();
    const giving = new AbortController();
    const given = ask('B0', null, giving.signal);
    void ask('C0');
    assert.deepEqual(await now(), []);
    giving.abort(new Error('enough'));
    await assert.rejects(given, /enough/);
    leave();
    leave();
    assert.deepEqual(await now(), ['C0']);
  });
});
