/** Tables that grow: what is held back for the widths, and for how long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTable } from '../../src/cli/table.ts';
import { sink } from './support.ts';

const columns = [
  { title: 'A', widthMax: 10 },
  { title: 'B', widthMax: 10 },
];

test('rows wait for their widths, but keep nobody waiting', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { output, text } = sink();
  const table = createTable(output, columns, () => 200);
  await table.add(['one', 'x']);
  t.mock.timers.tick(100);
  await table.add(['three', 'x']);
  t.mock.timers.tick(99);
  assert.equal(text(), '');
  t.mock.timers.tick(1);
  assert.equal(text(), 'A      B\none    x\nthree  x\n');
  // Later rows wait as long, and widen the columns, since there were too few to tell how wide they are.
  await table.add(['thirteen', 'x']);
  await table.add(['two', 'x']);
  t.mock.timers.tick(200);
  assert.equal(text().slice(27), 'thirteen  x\ntwo       x\n');
});

test('a table that is written in time is as wide as its first rows, and no timer is left', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { output, text } = sink();
  const table = createTable(output, columns, () => 200);
  await table.add(['one', 'x']);
  await table.flush();
  await table.add(['thirteen', 'x']);
  await table.flush();
  const written = text();
  assert.equal(written, 'A    B\none  x\nthirteen  x\n');
  t.mock.timers.tick(1000);
  assert.equal(text(), written);
});

test('without a limit rows wait until there are enough of them', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { output, text } = sink();
  const table = createTable(output, columns);
  for (let n = 1; n < 200; n += 1) {
    assert.equal(text(), '');
    await table.add([`${n}`, 'x']);
    t.mock.timers.tick(1000);
  }
  assert.match(text(), /^A {4}B\n1 {4}x\n/);
});
