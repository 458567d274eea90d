/** Times in front of log records, against clocks that misbehave. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createStamp, STAMP_BYTES } from '../../../src/adapters/log-keeper/stamp.ts';

const startMs = Date.UTC(2026, 1, 28, 23, 59, 59, 0);

const stampAt = (wallMs: number) => {
  const clock = { wall: wallMs, mono: 5000 };
  const header = Buffer.alloc(STAMP_BYTES);
  const stamp = createStamp(header, { wallMs: () => Math.floor(clock.wall), monoMs: () => clock.mono });
  return {
    pass: (ms: number) => {
      clock.wall += ms;
      clock.mono += ms;
    },
    setWall: (ms: number) => {
      clock.wall = ms;
    },
    take: () => {
      stamp.take();
      return header.toString('latin1');
    },
    advance: () => {
      stamp.advance();
      return header.toString('latin1');
    },
  };
};

describe('the stamp of log records', () => {
  it('is RFC 3339 with nine digits, and goes on over the end of a month', () => {
    const stamp = stampAt(startMs);
    assert.equal(stamp.take(), '2026-02-28T23:59:59.000000000Z');
    assert.equal(stamp.advance(), '2026-02-28T23:59:59.000000001Z');
    stamp.pass(999.75);
    assert.equal(stamp.take(), '2026-02-28T23:59:59.999750000Z');
    for (let count = 1; count < 250_000; count += 1) stamp.advance();
    assert.equal(stamp.advance(), '2026-03-01T00:00:00.000000000Z');
    assert.equal(stamp.advance(), '2026-03-01T00:00:00.000000001Z');
  });

  it('is within 3 ms of the wall clock, rises always, and follows its steps forward', () => {
    const step = fc.oneof(fc.double({ min: 0, max: 3, noNaN: true }), fc.integer({ min: 0, max: 100_000 }));
    fc.assert(
      fc.property(fc.array(fc.tuple(step, fc.nat(3))), (steps) => {
        const stamp = stampAt(startMs);
        let last = stamp.take();
        let wallMs = startMs;
        for (const [ms, jump] of steps) {
          stamp.pass(ms);
          wallMs += ms;
          if (jump === 3) {
            wallMs += 60_000;
            stamp.setWall(wallMs);
          }
          const now = stamp.take();
          assert.ok(now > last, `${now} is not after ${last}`);
          assert.ok(Math.abs(Date.parse(now) - wallMs) <= 3, `${now} is not ${new Date(wallMs).toISOString()}`);
          last = now;
        }
      }),
    );
  });

  it('waits for a clock that was set back a little, and follows one that was set back far', () => {
    const stamp = stampAt(startMs);
    const first = stamp.take();
    stamp.setWall(startMs - 500);
    assert.equal(stamp.take(), first.replace('000000000Z', '000000001Z'));
    stamp.setWall(startMs - 3_600_000);
    assert.equal(stamp.take(), '2026-02-28T22:59:59.000000000Z');
  });
});
