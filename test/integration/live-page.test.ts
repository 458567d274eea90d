/**
 * The page of `scribe ui` beside a daemon at work, in a real Chromium: a pod that is run by runc comes onto it by itself, lane by
 * lane and call by call, its container's end too, and a click on that says who ended it. It goes on when the daemon is killed. Runs alone.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { blankPage, inkOn, openRecord, panelOf, says, textOf } from '../cli/ui/looking.ts';
import { problemsOf, startChromium } from '../support/chromium.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { runPod } from '../support/pods.ts';
import { startProcess } from '../support/process.ts';

const owner = cleanupAfterAll();
const scribe = join(import.meta.dirname, '../../bin/scribe');
let chromium: Browser;
let node: TestNode;

before(async () => {
  [chromium, node] = await Promise.all([startChromium(owner), startNode(owner)]);
});

test('a pod comes onto the page while it runs, its end too, and a click says who ended it', async (t) => {
  const { daemon } = node;
  const ui = await startProcess(t, [scribe, 'ui', '--root', daemon.dirs.root, '--utc']);
  const [, url = ''] = await ui.until(/(http:\/\/127\.0\.0\.1:\d+\/\S+\/)\n/);
  const page = await blankPage(t, chromium);
  const problems = problemsOf(page);
  const row = (words: RegExp) => page.locator('#rows tr').filter({ hasText: words }).first();
  await page.goto(url);
  await row(/PullImage/).waitFor();
  assert.match(await textOf(page, '#status'), /[^\d]2 lanes\.$/);
  await page.keyboard.press('l');
  await page.getByRole('button', { name: 'Follow what is written', pressed: true }).waitFor();
  const inkBefore = await inkOn(page, 'lane-canvas');

  const { containerId } = await runPod(daemon, 'watched', busyboxName, ['sleep', '1000'], {}, t);
  await row(/StartContainer.*default\/watched main.*OK/).waitFor();
  await says(page, '#status', /[^\d]4 lanes\.$/);
  assert.ok((await inkOn(page, 'lane-canvas')) > inkBefore);

  await page.locator('#lanes').press('PageDown');
  await says(page, '#lane-note', /./);
  await daemon.cri.runtime.stopContainer({ containerId, timeout: '0' });
  const seq = Number(await row(/exited.*default\/watched main.*137/).getAttribute('data-seq'));
  await openRecord(page, seq);
  assert.match(
    await textOf(page, '#panel-body'),
    /Container main of pod default\/watched .* was stopped by \S+ \(pid \d+, uid 0\); SIGKILL ended it/,
  );
  const stop = page
    .locator('#panel li')
    .filter({ hasText: /called StopContainer/ })
    .getByRole('button');
  const call = Number(await stop.textContent());
  await stop.click();
  await panelOf(page, call);
  assert.match(await textOf(page, '#panel-body'), /StopContainer/);

  // A daemon that dies and comes back writes into the same journal: the page goes on.
  await page.keyboard.press('0');
  await daemon.kill();
  await daemon.start();
  await page.locator('#rows tr').filter({ hasText: 'daemon started' }).nth(1).waitFor();
  assert.deepEqual(problems, []);
});
