/** Signals between CRI's enum, Linux's numbers and images' words. */
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { describe, it } from 'node:test';
import { Signal } from '../../../src/wire/cri/api.ts';
import {
  criSignalOf,
  isCriSignal,
  linuxSignalOf,
  parseSignal,
  signalName,
  stopSignalOf,
} from '../../../src/domain/oci/signals.ts';

/** SIGRTMIN is 34 to every C library on Linux: the kernel's 32 and 33 are theirs. */
const linuxNumber = (enumName: string): number => {
  const name = enumName.replace('SIGNAL_', '');
  const realTime = /^SIGRT(MIN|MAX)(?:(PLUS|MINUS)(\d+))?$/.exec(name);
  if (realTime !== null) {
    const offset = Number(realTime[3] ?? 0);
    return realTime[1] === 'MIN' ? 34 + offset : 64 - offset;
  }
  // Node has no SIGCLD: the old name of SIGCHLD.
  return constants.signals[(name === 'SIGCLD' ? 'SIGCHLD' : name) as NodeJS.Signals];
};

const named = Object.entries(Signal).filter(([, value]) => value > 0);

describe('signals', () => {
  it('every value of the enum is the number that Linux gives the name', () => {
    assert.equal(named.length, 65);
    for (const [name, value] of named) assert.equal(linuxSignalOf(value), linuxNumber(name), name);
    for (const value of [0, -1, 66, 1.5]) assert.equal(linuxSignalOf(value), null);
    assert.deepEqual([0, 65, 66, -1, 0.5].map(isCriSignal), [true, true, false, false, false]);
  });

  it('every number goes there and back', () => {
    for (let linux = 1; linux <= 64; linux += 1) {
      const value = criSignalOf(linux);
      if (linux === 32 || linux === 33) assert.equal(value, 0);
      else assert.equal(linuxSignalOf(value), linux);
      if (value !== 0) assert.equal(parseSignal(signalName(linux)), linux);
    }
  });

  it('images may write them in many ways', () => {
    const forms = { SIGTERM: 15, TERM: 15, term: 15, sigquit: 3, '9': 9, 'SIGRTMIN+3': 37, RTMIN: 34, 'RTMAX-14': 50 };
    for (const [text, number] of Object.entries(forms)) assert.equal(parseSignal(text), number, text);
    for (const text of ['', '0', '65', '-1', 'SIGNONE', 'SIG', 'SIGRTMIN+31', 'SIGRTMAX+1', 'TERM ', '1e1', '015x']) {
      assert.equal(parseSignal(text), null, text);
    }
  });

  it('a container is stopped by its own, else its image’s, else SIGTERM', () => {
    assert.equal(stopSignalOf({ stopSignal: 29 }, { stopSignal: 'SIGINT' }), 10);
    assert.equal(stopSignalOf({}, { stopSignal: 'SIGINT' }), 2);
    assert.equal(stopSignalOf({}, { stopSignal: 'nonsense' }), 15);
    assert.equal(stopSignalOf({}, {}), 15);
  });
});
