/**
 * The page of `scribe ui` beside a daemon at work, in a real Chromium: a pod that is run by runc comes onto it by itself, lane by
 * lane and call by call, its container's end too, and a click on that says who ended it. Runs alone.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { inkOn, openRecord, rowTexts, textOf } from '../cli/ui/looking.ts';
import { type Chromium, startChromium } from '../support/chromium.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { runPod } from '../support/pods.ts';
import { startProcess } from '../support/process.ts';

const owner = cleanupAfterAll();
const scribe = join(import.meta.dirname, '../../bin/scribe');
let chromium: Chromium;
let node: TestNode;

before(async () => {
  [chromium, node] = await Promise.all([startChromium(owner), startNode(owner)]);
});

const row = (words: string): string => `${rowTexts}.find((text) => ${words}.test(text))`;

test('a pod comes onto the page while it runs, its end too, and a click says who ended it', async (t) => {
  const { daemon } = node;
  const ui = await startProcess(t, [scribe, 'ui', '--root', daemon.dirs.root, '--utc']);
  const [, url = ''] = await ui.until(/(http:\/\/127\.0\.0\.1:\d+\/\S+\/)\n/);
  const page = await chromium.page();
  await page.goto(url);
  await page.until(row('/PullImage/'), 'the call that pulled the image');
  assert.match(await page.evaluate(textOf('#status')), /[^\d]2 lanes\.$/);
  await page.press('l');
  await page.until("document.querySelector('#live').getAttribute('aria-pressed') === 'true'");
  const inkBefore = await page.evaluate<number>(inkOn('lane-canvas'));

  const { containerId } = await runPod(daemon, 'watched', busyboxName, ['sleep', '1000'], {}, t);
  await page.until(row('/StartContainer.*default\\/watched main.*OK/'), 'the call that started the container');
  await page.until(`/[^\\d]4 lanes\\.$/.test(${textOf('#status')})`, 'lanes of the pod and its container');
  assert.ok((await page.evaluate<number>(inkOn('lane-canvas'))) > inkBefore);

  await page.evaluate("document.querySelector('#lanes').focus()");
  await page.press('PageDown');
  await page.until(`${textOf('#lane-note')} !== ''`);
  await daemon.cri.runtime.stopContainer({ containerId, timeout: '0' });
  const ended =
    "[...document.querySelectorAll('#rows tr')].find((tr) => /exited.*default\\/watched main.*137/.test(tr.textContent))";
  const seq = Number(await page.until<string>(`${ended}?.dataset.seq`, 'the end of the container'));
  await openRecord(page, seq);
  const panel = await page.evaluate<string>(textOf('#panel-body'));
  assert.match(
    panel,
    /Container main of pod default\/watched .* was stopped by \S+ \(pid \d+, uid 0\); SIGKILL ended it/,
  );
  const stops = "[...document.querySelectorAll('#panel li')].find((li) => /called StopContainer/.test(li.textContent))";
  await page.evaluate(`${stops}.querySelector('button').id = 'who-ended-it'`);
  await page.click('#who-ended-it');
  await page.until(
    `${textOf('#panel-title')} !== 'Record ${seq}' && /StopContainer/.test(${textOf('#panel-body')})`,
    'the call',
  );
  assert.deepEqual(page.problems(), []);
});
