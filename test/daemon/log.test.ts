/** The daemon's log on a terminal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { loggable, SERIALIZERS, terminalLine } from '../../src/daemon/log.ts';

const logged = (write: (log: pino.Logger) => void): string => {
  const lines: string[] = [];
  write(
    pino({ base: null, serializers: SERIALIZERS }, { write: (line: string) => void lines.push(terminalLine(line)) }),
  );
  return lines.join('');
};

test('a line has its time with a zone, its level in words, the message and what belongs to it', () => {
  const line = logged((log) => log.warn({ bytes: 7, dirs: ['a'], socket: '/run/s.sock' }, 'the disk is full'));
  const match = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d) WARN  the disk is full (.*)\n$/.exec(line);
  assert.equal(match?.[2], 'bytes=7 dirs=["a"] socket=/run/s.sock');
  const ms = Date.parse((match[1] ?? '').replace(' ', 'T'));
  assert.ok(Math.abs(Date.now() - ms) < 60_000, `${match[1]} is not now`);
});

test('nothing that is logged steers the terminal', () => {
  const line = logged((log) => log.info({ name: 'a\u001b[31m\nb\u009b' }, 'c\u0007'));
  assert.match(line, /^[\x20-\x7e]*\n$/);
});

test('C12: of a bug it has name, code and frames, and not its message', () => {
  const error = Object.assign(new TypeError('canary', { cause: new Error('canary') }), {
    code: 'ERR_X',
    token: 'canary',
  });
  const line = logged((log) => log.error({ error: loggable(error) }, 'ListContainers failed unexpectedly'));
  assert.doesNotMatch(line, /canary/);
  assert.match(line, /TypeError \[ERR_X\]: \[message left out\]\\n {4}at .*log\.test\.ts:\d+/);
  assert.match(line, /Caused by: Error: \[message left out\]/);
});

test('C12: so it has of any exception that is logged as it is; what was worded for the log stays', () => {
  const quoting = logged((log) => log.warn({ error: new Error('canary') }, 'removed images still take room'));
  assert.doesNotMatch(quoting, /canary/);
  assert.match(quoting, /Error: \[message left out\]\\n {4}at .*log\.test\.ts:\d+/);
  const missing = Object.assign(new Error('ENOENT: no such file, open /x'), {
    code: 'ENOENT',
    errno: -2,
    syscall: 'open',
  });
  assert.match(
    logged((log) => log.warn({ error: missing }, 'x')),
    /ENOENT: no such file, open \/x/,
  );
  assert.match(
    logged((log) => log.warn({ error: 'said so' }, 'x')),
    /error=said so/,
  );
});
