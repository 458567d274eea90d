/** Places for attached clients: they run out for one container, and for all, before the keeper's connections do. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createAttachedPlaces } from '../../../src/adapters/log-keeper/attach-limits.ts';

const full = (what: RegExp) => ({ name: 'FailureError', message: what });

describe('places for attached clients', () => {
  it('are eight at one container, and free again when a client leaves', () => {
    const takePlace = createAttachedPlaces();
    const leave = Array.from({ length: 8 }, () => takePlace('busy'));
    assert.throws(() => takePlace('busy'), full(/^Container busy has as many attached clients/));
    takePlace('other');
    leave[3]?.();
    takePlace('busy');
    assert.throws(() => takePlace('busy'), full(/^Container busy/));
  });

  it('are 32 in all', () => {
    const takePlace = createAttachedPlaces();
    const leave = Array.from({ length: 32 }, (_, index) => takePlace(`container-${index}`));
    assert.throws(() => takePlace('one-more'), full(/^The node has as many attached clients/));
    leave[0]?.();
    takePlace('one-more');
  });
});
