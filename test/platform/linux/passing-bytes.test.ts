/** Bytes that pass through a thread are collected while their buffers are young. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { constants, type NodeGCPerformanceDetail, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { it } from 'node:test';
import { createPassingBytes } from '../../../src/platform/linux/passing-bytes.ts';

type GcEntry = PerformanceEntry & { readonly detail: NodeGCPerformanceDetail };
const PIECE_BYTES = 64 * 1024;
const ALL_BYTES = 128 * 1024 * 1024;

it('has buffers that have passed collected every 2 MiB, and the heap not marked for them', async (t) => {
  const kinds: (number | undefined)[] = [];
  const take = (entries: readonly PerformanceEntry[]): void => {
    for (const entry of entries) kinds.push((entry as GcEntry).detail.kind);
  };
  const observer = new PerformanceObserver((list) => take(list.getEntries()));
  const passed = createPassingBytes();
  observer.observe({ entryTypes: ['gc'] });
  t.after(() => observer.disconnect());
  let mostBytes = 0;
  for (let bytes = 0; bytes < ALL_BYTES; bytes += PIECE_BYTES) {
    passed(Buffer.alloc(PIECE_BYTES, bytes).length);
    mostBytes = Math.max(mostBytes, process.memoryUsage().arrayBuffers);
    await nextTurn();
  }
  take(observer.takeRecords());
  const count = (kind: number): number => kinds.filter((each) => each === kind).length;
  assert.ok(count(constants.NODE_PERFORMANCE_GC_MINOR) >= 64, `${count(constants.NODE_PERFORMANCE_GC_MINOR)} minor`);
  assert.ok(count(constants.NODE_PERFORMANCE_GC_MAJOR) <= 2, `${count(constants.NODE_PERFORMANCE_GC_MAJOR)} major`);
  assert.ok(mostBytes < 8 * 1024 * 1024, `${mostBytes} bytes in buffers at most`);
  assert.equal((globalThis as { gc?: unknown }).gc, undefined);
});
