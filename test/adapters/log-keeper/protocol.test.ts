/** What daemon and log keeper say to each other: bounded, checked, and the same however it is cut. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { NO_STATE, parseKeeperState } from '../../../src/adapters/log-keeper/keeper-state.ts';
import {
  encodeLine,
  type KeeperRequest,
  parseKeptOutput,
  parseReply,
  parseRequest,
} from '../../../src/adapters/log-keeper/protocol.ts';
import { createLineReader } from '../../../src/platform/rpc/lines.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';

const path = fc
  .array(fc.stringMatching(/^[A-Za-z0-9_\- "\\\n]{1,20}$/), { minLength: 1, maxLength: 5 })
  .map((names) => `/${names.join('/')}`);
const containerId = fc.stringMatching(/^[0-9a-f]{64}$/);

const request: fc.Arbitrary<KeeperRequest> = fc.oneof(
  fc.nat().map((protocol) => ({ op: 'hello' as const, protocol })),
  fc.tuple(containerId, path, fc.option(path), fc.option(path)).map(([id, stdoutFifo, stderrFifo, logPath]) => {
    return {
      op: 'open' as const,
      isNew: logPath === null,
      containerId: id,
      stdoutFifo,
      stderrFifo,
      logPath,
      lineBytesMax: 1024,
    };
  }),
  fc.tuple(containerId, path).map(([id, logPath]) => ({ op: 'reopen' as const, containerId: id, logPath })),
  fc.tuple(containerId, fc.nat()).map(([id, timeoutMs]) => ({ op: 'close' as const, containerId: id, timeoutMs })),
  fc.constantFrom({ op: 'list' as const }, { op: 'bye' as const }),
);

describe('the protocol of the log keeper', () => {
  it('carries every request as it is, in whatever pieces', () => {
    fc.assert(
      fc.property(fc.array(request, { maxLength: 5 }), fc.integer({ min: 1, max: 50 }), (requests, pieceBytes) => {
        const bytes = Buffer.from(requests.map((each, number) => encodeLine({ number, ...each })).join(''));
        const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, piece) =>
          bytes.subarray(piece * pieceBytes, (piece + 1) * pieceBytes),
        );
        const lines: string[] = [];
        pieces.forEach(createLineReader(100_000, (line) => lines.push(line), assert.fail));
        assert.deepEqual(
          lines.map((line) => parseRequest(JSON.parse(line))),
          requests,
        );
      }),
    );
  });

  it('answers anything else with a failure, never with a crash', () => {
    const nearly = fc.record(
      {
        op: fc.oneof(fc.constantFrom('open', 'close', 'reopen', 'hello', '__proto__'), fc.anything()),
        containerId: fc.oneof(containerId, fc.string(), fc.anything()),
        stdoutFifo: fc.oneof(path, fc.string(), fc.constant('/a/../b')),
        stderrFifo: fc.anything(),
        logPath: fc.oneof(path, fc.string(), fc.constant('/a\0b')),
        timeoutMs: fc.oneof(fc.integer(), fc.double(), fc.anything()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything(), nearly), (value) => {
        try {
          parseRequest(value);
        } catch (error) {
          assert.ok(error instanceof FailureError && error.failure.reason === 'InvalidField');
        }
      }),
    );
  });

  it('takes no path that could lead elsewhere', () => {
    const good = { containerId: 'a', stdoutFifo: '/run/a', stderrFifo: null, logPath: null, lineBytesMax: 16384 };
    assert.deepEqual(parseKeptOutput(good), good);
    const paths = ['', 'a', '/', '/a/', '/a/../b', '/a//b', '/a/./b', '/a\0b', `/${'a'.repeat(5000)}`, 7, null];
    for (const bad of paths) assert.throws(() => parseKeptOutput({ ...good, stdoutFifo: bad }), FailureError);
    for (const id of ['', '.', '..', 'a/b', '-a', 'a\n', 'é', 'a'.repeat(129)])
      assert.throws(() => parseKeptOutput({ ...good, containerId: id }), FailureError);
    for (const bad of [0, -1, 1.5, 65_537, '1024', null])
      assert.throws(() => parseKeptOutput({ ...good, lineBytesMax: bad }), FailureError);
  });

  it('gives failures back with their reasons, and knows no reason that is none', () => {
    const failure = { reason: 'WrongState', message: 'no' } as const;
    assert.deepEqual(parseReply(encodeLine({ number: 3, failure })), { number: 3, failure });
    const odd = '{"number":3,"failure":{"reason":"toString","message":"no"}}';
    assert.deepEqual(parseReply(odd), { number: 3, failure: { reason: 'Bug', message: 'no' } });
    assert.throws(() => parseReply('{"number":"3"}'));
  });
});

describe('the state file of the log keeper', () => {
  it('never keeps a keeper from starting', () => {
    const bootId = 'this boot';
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        assert.deepEqual(
          parseKeeperState(text, bootId, () => undefined),
          NO_STATE,
        );
      }),
    );
    const good = { containerId: 'a', stdoutFifo: '/run/a', stderrFifo: null, logPath: null, lineBytesMax: 16384 };
    const reports: string[] = [];
    const text = JSON.stringify({ bootId, containers: [{ ...good, containerId: '..' }, 7, good] });
    const { containers } = parseKeeperState(text, bootId, (report) => reports.push(report));
    assert.deepEqual(
      containers.map(({ request }) => request),
      [good],
    );
    assert.equal(reports.length, 2);
    // As a keeper from before lines had a limit of their own wrote it down.
    const { lineBytesMax: _later, ...earlier } = good;
    const earlierText = JSON.stringify({ bootId, containers: [earlier] });
    assert.deepEqual(parseKeeperState(earlierText, bootId, assert.fail).containers.at(0)?.request, good);
    assert.deepEqual(
      parseKeeperState(text, 'another boot', () => undefined),
      NO_STATE,
    );
  });
});
