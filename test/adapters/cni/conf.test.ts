/** Network configurations: which file of a directory is taken, and what a bad one is told. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { loadConfDir } from '../../../src/adapters/cni/conf.ts';

const makeDir = async (t: TestContext, files: Readonly<Record<string, unknown>>): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-cni-conf-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(dir, name, '..'), { recursive: true });
    await writeFile(join(dir, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return dir;
};

const load = (dir: string, maxConfFiles = 64) => loadConfDir(dir, maxConfFiles);

const named = (name: string) => ({ cniVersion: '1.0.0', name, plugins: [{ type: 'bridge' }] });

describe('loading network configurations', () => {
  it('takes the first valid file in lexical order and names those it passed over', async (t) => {
    const dir = await makeDir(t, {
      '05-readme.txt': 'nothing',
      '10-broken.conflist': '{"name": ',
      '20-typeless.conf': { cniVersion: '1.0.0', name: 'x' },
      '30-chosen.conflist': named('chosen'),
      '40-later.conf': { cniVersion: '1.0.0', name: 'later', type: 'ptp' },
      '00-directory.conflist/x': '',
    });
    const { network, problem, skipped } = await load(dir);
    assert.equal(network?.path, join(dir, '30-chosen.conflist'));
    assert.deepEqual(network.confList, named('chosen'));
    assert.equal(problem, null);
    assert.match(skipped.join('\n'), /10-broken\.conflist is not JSON.*\n.*20-typeless\.conf type: /);
  });

  it('takes the first of a name, and says whose the others are where there is none', async (t) => {
    const files = { '10.conflist': named('a'), '20.conf': { cniVersion: '1.0.0', name: 'b', type: 'ptp' } };
    const dir = await makeDir(t, { ...files, '30.conflist': named('b'), '40.conflist': '{' });
    const { network, skipped } = await loadConfDir(dir, 64, 'b');
    assert.equal(network?.path, join(dir, '20.conf'));
    assert.deepEqual(skipped, []);
    const { problem } = await loadConfDir(dir, 64, 'c');
    assert.match(
      problem ?? '',
      /^no valid configuration of CNI network c in .*40\.conflist is not JSON.*10\.conflist is of network a/,
    );
  });

  it('makes a list of a single plugin, from .conf and .json', async (t) => {
    const dir = await makeDir(t, { 'a.json': { cniVersion: '0.3.1', name: 'old', type: 'ptp', mtu: 1400 } });
    const { network } = await load(dir);
    const plugins = [{ type: 'ptp', mtu: 1400 }];
    assert.deepEqual(network?.confList, { cniVersion: '0.3.1', name: 'old', plugins });
  });

  it('chooses the highest version that both sides know', async (t) => {
    const version = async (conf: object): Promise<string | undefined> =>
      (await load(await makeDir(t, { 'a.conflist': { ...named('x'), ...conf } }))).network?.confList.cniVersion;
    assert.equal(await version({ cniVersions: ['0.4.0', '1.1.0', '2.0.0'] }), '1.1.0');
    assert.equal(await version({ cniVersion: '1.0.0', cniVersions: ['0.4.0'] }), '1.0.0');
    assert.equal(await version({ cniVersion: undefined }), '0.1.0');
    const { problem } = await load(await makeDir(t, { 'a.conflist': { ...named('x'), cniVersion: '2.0.0' } }));
    assert.match(problem ?? '', /a\.conflist cniVersion: 2\.0\.0 is none of the supported versions/);
  });

  it('reads flags, written as booleans or as text', async (t) => {
    const dir = await makeDir(t, { 'a.conflist': { ...named('x'), disableCheck: 'True', disableGC: true } });
    const { network } = await load(dir);
    assert.equal(network?.confList.disableCheck, true);
    assert.equal(network.disableGC, true);
  });

  it('appends the plugins of the directory named after the network, unless told not to', async (t) => {
    const files = {
      'net1/10-a.conf': { type: 'tuning' },
      'net1/20-b.conf': { type: 'sbr' },
      'net1/ignored.json': { type: 'no' },
    };
    const types = async (conf: object): Promise<unknown> =>
      (await load(await makeDir(t, { ...files, 'a.conflist': conf }))).network?.confList.plugins.map(
        ({ type }) => type,
      );
    assert.deepEqual(await types(named('net1')), ['bridge', 'tuning', 'sbr']);
    assert.deepEqual(await types({ cniVersion: '1.1.0', name: 'net1' }), ['tuning', 'sbr']);
    assert.deepEqual(await types({ ...named('net1'), loadOnlyInlinedPlugins: true }), ['bridge']);
  });

  it('says what is wrong when no file will do', async (t) => {
    const problem = async (conf: unknown): Promise<string> =>
      (await load(await makeDir(t, { 'a.conflist': conf }))).problem ?? 'none';
    assert.match(await problem({ ...named('x'), plugins: [] }), /a\.conflist has no plugins/);
    assert.match(await problem({ ...named('x'), plugins: [{ type: '../../bin/sh' }] }), /plugins\.0\.type: must start/);
    assert.match(await problem(named('../x')), /a\.conflist name: must start with a letter or digit/);
    assert.match(await problem(`{"name":"x","y":"${'z'.repeat(1024 * 1024)}"}`), /is larger than 1048576 bytes/);
    assert.match((await load(await makeDir(t, {}))).problem ?? '', /it holds no \.conflist, \.conf, \.json file/);
    assert.match((await load('/nonexistent/net.d')).problem ?? '', /the directory does not exist/);
  });

  it('is not held up by a FIFO, and looks at no more files than it may', async (t) => {
    const dir = await makeDir(t, { 'c.conflist': named('c') });
    await promisify(execFile)('mkfifo', [join(dir, 'a.conflist'), join(dir, 'b.conflist')]);
    assert.equal((await load(dir)).network?.confList.name, 'c');
    assert.match(
      (await load(dir, 2)).problem ?? '',
      /a\.conflist is not a regular file; .*only the first 2 of 3 files/,
    );
  });
});
