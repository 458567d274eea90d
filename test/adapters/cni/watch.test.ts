/** The watch on the configuration directory: every change is observed once, wherever the directory goes. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { type CniAdapter, createCniAdapter } from '../../../src/adapters/cni/adapter.ts';
import type { Observation } from '../../../src/domain/model/observation.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';

const ARRIVAL_MS_MAX = 10_000;

interface Watched {
  readonly dir: string;
  readonly confDir: string;
  readonly adapter: CniAdapter;
  /**
   * Waits for an observation that says `expected`: a network's name and number of plugins, or "none". Gives those that
   * came before it: on a busy machine a change in two steps may be seen half-way.
   */
  readonly until: (expected: string) => Promise<string[]>;
  /** Observations that nobody waited for yet. */
  readonly unasked: () => number;
}

const summary = (observation: Observation): string => {
  assert.equal(observation.kind, 'NetworkConfigured');
  const confList = observation.confList as { name: string; plugins: unknown[] } | null;
  assert.equal(confList === null, observation.problem !== null, 'there is a problem exactly when there is no network');
  return confList === null ? 'none' : `${confList.name} ${confList.plugins.length}`;
};

const watchDir = async (
  t: TestContext,
  prepare: (dir: string) => Promise<unknown> = async () => undefined,
): Promise<Watched> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-cni-watch-'));
  const confDir = join(dir, 'etc', 'cni', 'net.d');
  await prepare(dir);
  const queue: string[] = [];
  let wake: () => void = () => undefined;
  const adapter = createCniAdapter({
    files: pooledFiles,
    spawner: { run: () => Promise.reject(new Error('no plugin runs here')) },
    confDir,
    binDirs: [],
    stateDir: join(dir, 'state'),
    pluginTimeoutMs: 1000,
    ipPreference: 'ipv4',
    maxConfFiles: 8,
    observe: (observation) => {
      queue.push(summary(observation));
      wake();
      return Promise.resolve();
    },
    log: { info: () => undefined, warn: () => undefined },
  });
  t.after(async () => {
    adapter.close();
    await rm(dir, { recursive: true, force: true });
  });
  await adapter.start();
  const next = async (): Promise<string> => {
    while (queue.length === 0) {
      const arrived = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const late = AbortSignal.timeout(ARRIVAL_MS_MAX);
      await Promise.race([
        arrived,
        new Promise((_resolve, reject) => {
          late.addEventListener('abort', () => reject(new Error('no observation arrived')));
        }),
        adapter.failed.then((error) => Promise.reject(error)),
      ]);
    }
    return queue.shift() ?? '';
  };
  const until = async (expected: string): Promise<string[]> => {
    const before: string[] = [];
    for (;;) {
      const seen = await next();
      if (seen === expected) return before;
      before.push(seen);
    }
  };
  return { dir, confDir, adapter, until, unasked: () => queue.length };
};

const conf = (name: string): string => JSON.stringify({ cniVersion: '1.0.0', name, plugins: [{ type: 'bridge' }] });

const makeConfDir = async (dir: string, name: string): Promise<void> => {
  await mkdir(join(dir, 'etc', 'cni', 'net.d'), { recursive: true });
  await writeFile(join(dir, 'etc', 'cni', 'net.d', '10.conflist'), conf(name));
};

describe('the watch on CNI configurations', { timeout: 60_000 }, () => {
  it('observes what is there at the start, once', async (t) => {
    const { until, unasked } = await watchDir(t, (dir) => makeConfDir(dir, 'a'));
    await until('a 1');
    assert.equal(unasked(), 0);
  });

  it('follows files that come, change, and go', async (t) => {
    const { confDir, until } = await watchDir(t, (dir) => mkdir(join(dir, 'etc', 'cni', 'net.d'), { recursive: true }));
    await until('none');
    await writeFile(join(confDir, '20.conflist'), conf('twenty'));
    await until('twenty 1');
    await writeFile(join(confDir, '10.conflist.tmp'), conf('ten'));
    await rename(join(confDir, '10.conflist.tmp'), join(confDir, '10.conflist'));
    await until('ten 1');
    await writeFile(join(confDir, '10.conflist'), conf('ten-b'));
    await until('ten-b 1');
    await rm(join(confDir, '10.conflist'));
    await until('twenty 1');
    await rm(join(confDir, '20.conflist'));
    await until('none');
  });

  it('finds a directory that appears later, level by level', async (t) => {
    const { dir, confDir, until } = await watchDir(t);
    await until('none');
    await mkdir(join(dir, 'etc'));
    await mkdir(join(dir, 'etc', 'cni'));
    await mkdir(confDir);
    await writeFile(join(confDir, '10.conflist'), conf('a'));
    await until('a 1');
  });

  it('follows a directory that is replaced, and a parent that is', async (t) => {
    const { dir, confDir, until } = await watchDir(t, (top) => makeConfDir(top, 'a'));
    await until('a 1');
    await rename(confDir, join(dir, 'old-net.d'));
    await until('none');
    await mkdir(join(dir, 'new-net.d'));
    await writeFile(join(dir, 'new-net.d', '10.conflist'), conf('b'));
    await rename(join(dir, 'new-net.d'), confDir);
    await until('b 1');
    await rename(join(dir, 'etc'), join(dir, 'old-etc'));
    await until('none');
    await makeConfDir(dir, 'c');
    await until('c 1');
    await writeFile(join(confDir, '10.conflist'), conf('d'));
    await until('d 1');
  });

  /** What is deleted, and the name of the network that is there when it was made again. */
  const goneInTurn = [
    ['etc/cni/net.d', 'b'],
    ['etc/cni', 'c'],
    ['etc', 'd'],
  ] as const;

  it('follows a directory that is deleted and made again', async (t) => {
    const { dir, until } = await watchDir(t, (top) => makeConfDir(top, 'a'));
    await until('a 1');
    for (const [gone, name] of goneInTurn) {
      await rm(join(dir, gone), { recursive: true });
      await until('none');
      await makeConfDir(dir, name);
      await until(`${name} 1`);
    }
  });

  it('follows a directory that is deleted and made again at once, with the same inode where the file system does that', async (t) => {
    const { dir, confDir, until } = await watchDir(t, (top) => makeConfDir(top, 'a'));
    await until('a 1');
    for (const [gone, name] of goneInTurn) {
      rmSync(join(dir, gone), { recursive: true });
      mkdirSync(confDir, { recursive: true });
      await until('none');
      await writeFile(join(confDir, '10.conflist'), conf(name));
      await until(`${name} 1`);
    }
  });

  it('follows a symbolic link that is swapped, as mounted config maps are', async (t) => {
    const { confDir, until } = await watchDir(t, async (dir) => {
      const netD = join(dir, 'etc', 'cni', 'net.d');
      for (const name of ['a', 'b']) {
        await mkdir(join(netD, `..${name}`), { recursive: true });
        await writeFile(join(netD, `..${name}`, '10.conflist'), conf(name));
      }
      await symlink('..a', join(netD, '..data'));
      await symlink('..data/10.conflist', join(netD, '10.conflist'));
    });
    await until('a 1');
    await symlink('..b', join(confDir, '..data.tmp'));
    await rename(join(confDir, '..data.tmp'), join(confDir, '..data'));
    await until('b 1');
  });

  it('follows the plugins that are added to a network', async (t) => {
    const { confDir, until } = await watchDir(t, (dir) => makeConfDir(dir, 'a'));
    await until('a 1');
    await mkdir(join(confDir, 'a'));
    await writeFile(join(confDir, 'a', '10.conf'), '{"type":"tuning"}');
    await until('a 2');
    await rm(join(confDir, 'a', '10.conf'));
    await until('a 1');
  });

  it('passes half-written files by: one observation for a file that is written in pieces', async (t) => {
    const { confDir, until, unasked } = await watchDir(t, (dir) => makeConfDir(dir, 'a'));
    await until('a 1');
    const text = conf('b');
    let longestGapMs = 0;
    let lastMs = performance.now();
    for (let length = 0; length <= text.length + 10; length += 10) {
      await writeFile(join(confDir, '10.conflist'), text.slice(0, length));
      longestGapMs = Math.max(longestGapMs, performance.now() - lastMs);
      lastMs = performance.now();
    }
    const before = await until('b 1');
    // On a machine that is too busy to write a piece within the quiet time, halves may be seen.
    if (longestGapMs < 50) assert.deepEqual(before, []);
    assert.equal(unasked(), 0);
  });

  it('C20: says why its watch ended when what it observes cannot be recorded', async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'scribe-cni-watch-'));
    await makeConfDir(dir, 'a');
    let refuse = false;
    const adapter = createCniAdapter({
      files: pooledFiles,
      spawner: { run: () => Promise.reject(new Error('no plugin runs here')) },
      confDir: join(dir, 'etc', 'cni', 'net.d'),
      binDirs: [],
      stateDir: join(dir, 'state'),
      pluginTimeoutMs: 1000,
      ipPreference: 'ipv4',
      maxConfFiles: 8,
      observe: () => (refuse ? Promise.reject(new Error('the journal is gone')) : Promise.resolve()),
      log: { info: () => undefined, warn: () => undefined },
    });
    t.after(async () => {
      adapter.close();
      await rm(dir, { recursive: true, force: true });
    });
    await adapter.start();
    refuse = true;
    await makeConfDir(dir, 'b');
    assert.equal((await adapter.failed).message, 'the journal is gone');
  });
});
