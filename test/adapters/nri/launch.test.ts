/** Plugins that are launched from a directory: real ones in Go, found, configured, restarted, and ended with the daemon. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { createFindings, reportTo } from '../../../src/daemon/findings.ts';
import { isAlive, readProcessStat } from '../../../src/platform/linux/processes.ts';
import { goProgram } from '../../support/go-program.ts';
import { requireRoot } from '../../support/netns.ts';
import { eventually } from '../../support/pods.ts';
import { startTested } from './adaptation.ts';
import { installScripted, toldIn } from './scripted-plugin.ts';
import { tempDir } from '../../support/temp-dir.ts';

const timeout = 60_000;
const executable = { mode: 0o755 };

before(requireRoot);

describe('launched plugins', { timeout }, () => {
  it('are the executables of the directory, in order, each with its name and configuration', async (t) => {
    const log = join(await tempDir(t), 'log');
    const nri = await startTested(t, {
      settings: { disableConnections: true },
      prepare: async (settings) => {
        const { pluginDir, configDir } = settings;
        await installScripted(settings, '20-second', { log });
        await installScripted(settings, '10-first', { log, events: ['CreateContainer', 'StopContainer'] });
        await mkdir(join(pluginDir, '05-directory'));
        await writeFile(join(pluginDir, '06-no-program'), 'text');
        await writeFile(join(pluginDir, 'misnamed'), '', executable);
        await writeFile(join(pluginDir, '1-short'), '', executable);
        await writeFile(join(configDir, 'first.conf'), 'not read: there is one for the whole name');
        await writeFile(join(pluginDir, '08-module'), Buffer.from('\0asm\x01\0\0\0'), executable);
        await symlink('nowhere', join(pluginDir, '07-dangling'));
      },
    });
    const statuses = nri.status().map((status) => `${status.index}-${status.name} ${status.state} ${status.launched}`);
    assert.deepEqual(new Set(statuses), new Set(['10-first registered true', '20-second registered true']));
    const first = await nri.registered('first');
    assert.deepEqual(first.events, ['CreateContainer', 'StopContainer']);
    assert.match(first.nriVersion, /^v0\.12\./);
    assert.ok(first.pid !== null && (await readProcessStat(first.pid)) !== null);
    assert.equal(nri.reports.length, 3);
    assert.match(nri.reports[0] ?? '', /08-module is not launched: it is a WASM module/);
    assert.match(
      nri.reports.join('\n'),
      /1-short is not launched[^]*misnamed is not launched: the name of an NRI plugin/,
    );
    const told = await toldIn(t, log, (lines) => lines.length === 2);
    assert.deepEqual(
      told.map(({ hook, runtime, version }) => [hook, runtime, version]),
      [
        ['Configure', 'scribe', '1.2.3'],
        ['Configure', 'scribe', '1.2.3'],
      ],
    );
  });

  it('are none where there is no directory, and get the configuration of their name where none has the whole', async (t) => {
    const none = await startTested(t);
    assert.deepEqual([none.status(), none.reports], [[], []]);
    const log = join(await tempDir(t), 'log');
    await startTested(t, {
      prepare: async ({ pluginDir, configDir }) => {
        await mkdir(pluginDir);
        await mkdir(configDir);
        await copyFile(await goProgram('nri-plugins/scripted'), join(pluginDir, '10-named'));
        await writeFile(join(configDir, 'named.conf'), JSON.stringify({ log }));
      },
    });
    assert.equal((await toldIn(t, log, (lines) => lines.length === 1))[0]?.hook, 'Configure');
  });

  it('do not keep others or the start back when they fail', async (t) => {
    const nri = await startTested(t, {
      settings: { registrationTimeoutMs: 5_000 },
      prepare: async (settings) => {
        const { pluginDir } = settings;
        await installScripted(settings, '30-good', {});
        await writeFile(
          join(pluginDir, '10-ends'),
          '#!/bin/sh\necho first >&2\necho no licence >&2\nexit 3\n',
          executable,
        );
        await writeFile(join(pluginDir, '11-no-format'), 'neither', executable);
        await writeFile(join(pluginDir, '12-crashes-in-configure'), '', executable);
        await installScripted(settings, '12-crashes-in-configure', { acts: [{ hook: 'Configure', crash: true }] });
      },
    });
    assert.equal((await nri.registered('good')).name, 'good');
    const reports = nri.reports.join('\n');
    assert.match(
      reports,
      /10-ends is not running \(.*it ended with exit code 3, and its last words were: first \/ no licence\)/,
    );
    assert.match(reports, /11-no-format is not running \(.*Could not start .*; it will be started again/);
    assert.match(reports, /12-crashes-in-configure is not running \(.*closed.*exit code 9/);
  });

  it('that end again and again, each time with other words, are one finding, with the last of them', async (t) => {
    const findings = createFindings();
    const dir = await tempDir(t);
    const lives = join(dir, 'lives');
    await startTested(t, {
      report: reportTo(findings, { warn: () => undefined }),
      prepare: async ({ pluginDir }) => {
        await mkdir(pluginDir);
        await writeFile(
          join(pluginDir, '10-ends'),
          `#!/bin/sh\necho >> ${lives}\necho "life $(wc -l < ${lives})" >&2\nexit 1\n`,
          executable,
        );
      },
    });
    const [found = ''] = await eventually('its third end is told of', async () => {
      const list = findings.list();
      return list.some((sentence) => sentence.includes('life 3')) && list;
    });
    assert.deepEqual(findings.list().length, 1);
    assert.match(found, /10-ends is not running .*life 3/);
  });

  it('are no finding any more once they have stayed for a while after an end', async (t) => {
    const findings = createFindings();
    const nri = await startTested(t, {
      report: reportTo(findings, { warn: () => undefined }),
      settle: findings.settle,
      prepare: (settings) => installScripted(settings, '10-frail', { acts: [{ hook: 'StopPodSandbox', crash: true }] }),
    });
    const { id } = await nri.registered('frail');
    await nri.synchronize(id, [], []);
    await nri.ask(id, 'StopPodSandbox', { pod: undefined });
    const [told = ''] = await eventually('its end is told', async () => findings.list().length > 0 && findings.list());
    assert.match(told, /10-frail is not running \(it disconnected; /);
    await nri.registered('frail', 1);
    await eventually('it has stayed', async () => findings.list().length === 0);
  });

  it('are started again when they crash or are disconnected, and end with the daemon', async (t) => {
    const log = join(await tempDir(t), 'log');
    const nri = await startTested(t, {
      settings: { requestTimeoutMs: 2_000, missesMax: 1 },
      prepare: (settings) =>
        installScripted(settings, '10-frail', {
          log,
          acts: [
            { hook: 'StopPodSandbox', crash: true },
            { hook: 'RemovePodSandbox', hang: true },
          ],
        }),
    });
    const request = { pod: undefined };
    const first = await nri.registered('frail');
    await nri.synchronize(first.id, [], []);
    const crashed = await nri.ask(first.id, 'StopPodSandbox', request);
    assert.equal(!crashed.ok && crashed.why, 'closed');
    assert.equal(await nri.gone(first.id), 'it disconnected');

    const second = await nri.registered('frail', 1);
    assert.notEqual(second.pid, first.pid);
    await nri.synchronize(second.id, [], []);
    const hung = await nri.ask(second.id, 'RemovePodSandbox', request);
    assert.equal(!hung.ok && hung.why, 'timedOut');
    assert.equal(await nri.gone(second.id), 'it missed 1 deadlines in a row');

    const third = await nri.registered('frail', 2);
    await nri.synchronize(third.id, [], []);
    assert.ok((await nri.ask(third.id, 'RunPodSandbox', request)).ok);
    await nri.close();
    const shutdowns = await toldIn(t, log, (lines) => lines.some(({ hook }) => hook === 'Shutdown'));
    assert.equal(shutdowns.filter(({ hook }) => hook === 'Configure').length, 3);
    for (const { pid } of [first, second, third]) {
      const stat = await readProcessStat(pid ?? 0);
      assert.ok(stat === null || !(await isAlive(stat)), `process ${pid} is still there`);
    }
    assert.match(nri.reports.join('\n'), /10-frail is not running \(it disconnected; it ended with exit code 9/);
  });

  it('that do not start are waited for no longer than they have to register', async (t) => {
    const sinceMs = performance.now();
    const nri = await startTested(t, {
      settings: { registrationTimeoutMs: 2_000 },
      prepare: async ({ pluginDir }) => {
        await mkdir(pluginDir);
        await writeFile(join(pluginDir, '10-sleeps'), '#!/bin/sh\nexec sleep 1000\n', executable);
      },
    });
    assert.match(nri.reports[0] ?? '', /10-sleeps is not running \(it did not register within 2000 ms/);
    assert.ok(performance.now() - sinceMs < 15_000);
    assert.equal(nri.status()[0]?.launched, true);
  });
});
