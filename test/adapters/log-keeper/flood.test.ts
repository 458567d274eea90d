/** A log keeper that is killed while a container writes as much as it can: what that may cost, and that the log says where. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { it } from 'node:test';
import { eventually } from '../../support/pods.ts';
import { containerIn, contentOf, fixtureOf, killProcess, nameOf, readLog, startWriter } from './support.ts';

const closeTimeoutMs = 10_000;
/** What one read can take: 64 KiB of 8 bytes a line, and the lines at its edges. */
const linesInHandMax = 8194;

it('C16: killed in a flood, it loses what it had just read at most, doubles nothing, and says where', async (t) => {
  const { connect, stateDir } = await fixtureOf(t);
  const keeper = await connect();
  const container = await containerIn(stateDir, 'flood');
  await keeper.open(container);
  const script = 'n=1000000; while :; do seq $n $((n + 1999)); n=$((n + 2000)); sleep 0.01; done';
  const flood = await startWriter(t, container, script);
  const kills = 5;
  const sizeOf = async (): Promise<number> => (await stat(container.logPath).catch(() => ({ size: 0 }))).size;
  for (let kill = 0; kill < kills; kill += 1) {
    const before = await sizeOf();
    await eventually('more of the flood', async () => (await sizeOf()) > before + 200_000, 30_000);
    await killProcess(nameOf(keeper));
    assert.deepEqual(await keeper.list(), ['flood']);
  }
  await flood.stop();
  await keeper.close('flood', closeTimeoutMs);
  const said = contentOf(await readLog(container.logPath));
  assert.equal(said.filter((line) => line.startsWith('scribe: the log keeper was killed')).length, kills);
  // A line that a kill has cut in two is whole nowhere.
  const counted = said.filter((line) => /^\d{7}$/.test(line)).map(Number);
  const steps = counted.map((value, index) => value - (counted[index - 1] ?? value - 1));
  assert.ok(
    steps.every((step) => step > 0),
    'none is doubled',
  );
  const lost = steps.reduce((sum, step) => sum + step - 1, 0);
  t.diagnostic(`${lost} lines were lost by ${kills} kills in a flood`);
  assert.ok(lost <= kills * linesInHandMax, `${lost} lines were lost`);
});
