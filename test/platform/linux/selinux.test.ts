/**
 * What the daemon reads of a node's SELinux policy, from directories like its own, and labels of files: those are
 * attributes that any kernel keeps, so they are written and read for real (root is needed).
 */
import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { createRelabel, readSelinuxPolicy, type Relabel, writeLabel } from '../../../src/platform/linux/selinux.ts';
import { readXattr } from '../../../src/platform/linux/syscalls.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { RunRequest, RunResult } from '../../../src/platform/spawner/types.ts';
import { prepareSelinux } from '../../../src/daemon/selinux.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

const LABEL = 'system_u:object_r:container_file_t:s0:c1,c2';
const usual = {
  process: 'system_u:system_r:container_t:s0',
  file: 'system_u:object_r:container_file_t:s0',
  path: null,
};

before(requireRoot);

const labelOf = async (path: string): Promise<string | undefined> =>
  (await readXattr(path, 'security.selinux').catch(() => undefined))?.toString();

const policyWith = async (t: TestContext, files: Readonly<Record<string, string>>): Promise<string> => {
  const dir = await tempDir(t);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), content);
  }
  return dir;
};

describe("the node's SELinux policy", () => {
  const contexts =
    '# of containers\nprocess = "a_u:b_r:c_t:s0"\ncontent = "x:y:z:s0"\nfile = "a_u:object_r:d_t:s0"\nro_file="e"\n';

  it('says what containers are, by the name that its configuration has', async (t) => {
    const dir = await policyWith(t, {
      config: '# SELINUXTYPE=no\nSELINUX=enforcing\nSELINUXTYPE=mine \n',
      'mine/contexts/lxc_contexts': contexts,
      'targeted/contexts/lxc_contexts': 'process = "no:no:no:s0"\nfile = "no:no:no:s0"\n',
    });
    const path = join(dir, 'mine/contexts/lxc_contexts');
    assert.deepEqual(await readSelinuxPolicy(dir), { process: 'a_u:b_r:c_t:s0', file: 'a_u:object_r:d_t:s0', path });
  });

  it('is targeted by default, and the usual one where it says nothing that can be used', async (t) => {
    const targeted = await policyWith(t, { 'targeted/contexts/lxc_contexts': contexts });
    assert.equal((await readSelinuxPolicy(targeted)).process, 'a_u:b_r:c_t:s0');
    assert.deepEqual(await readSelinuxPolicy(join(targeted, 'missing')), usual);
    const bad = { 'targeted/contexts/lxc_contexts': contexts.replace('a_u:b_r:c_t:s0', 'a",x=b:c:d:s0') };
    assert.deepEqual(await readSelinuxPolicy(await policyWith(t, bad)), usual);
    const outside = { config: 'SELINUXTYPE=../targeted\n', 'targeted/contexts/lxc_contexts': contexts };
    assert.deepEqual(await readSelinuxPolicy(await policyWith(t, outside)), usual);
  });
});

describe('labels', { timeout: 60_000 }, () => {
  const setUp = async (t: TestContext): Promise<{ dir: string; relabel: Relabel }> => {
    const dir = await tempDir(t);
    const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
    onCleanup(t, () => spawner.close());
    return { dir, relabel: createRelabel(spawner, '/usr/bin:/bin') };
  };

  it('are given to trees, with links in them, and to nothing that links lead to', async (t) => {
    const { dir, relabel } = await setUp(t);
    const at = (name: string): string => join(dir, name);
    await mkdir(at('tree/sub'), { recursive: true });
    await mkdir(at('elsewhere'));
    await writeFile(at('elsewhere/file'), '');
    await writeFile(at('tree/sub/file'), '');
    await writeFile(at('-file'), '');
    await symlink(at('elsewhere'), at('tree/link'));
    await symlink(at('elsewhere'), at('top'));
    await relabel([at('tree'), at('-file'), at('top')], LABEL);
    for (const name of ['tree', 'tree/sub', 'tree/sub/file', 'tree/link', '-file', 'top'])
      assert.equal(await labelOf(at(name)), `${LABEL}\0`, name);
    for (const name of ['elsewhere', 'elsewhere/file']) assert.equal(await labelOf(at(name)), undefined, name);
    await writeLabel(at('elsewhere/file'), LABEL);
    assert.equal(await labelOf(at('elsewhere/file')), `${LABEL}\0`);
    await rm(at('tree'), { recursive: true });
    await relabel([at('tree')], LABEL);
    await relabel(['/proc/version'], LABEL);
    await writeLabel('/proc/version', LABEL);
  });

  it('that cannot be given are a failure, and the work ends when it is told to', async (t) => {
    const { dir, relabel } = await setUp(t);
    const isReason = (reason: string) => (error: unknown) =>
      error instanceof FailureError && error.failure.reason === reason;
    await assert.rejects(relabel([dir], LABEL, AbortSignal.abort()), isReason('Cancelled'));
    const ends = (stderr: string, over: Partial<RunResult> = {}): Relabel => {
      const run = (_: RunRequest): Promise<RunResult> =>
        Promise.resolve({
          exitCode: 1,
          signalName: null,
          timedOut: false,
          truncated: false,
          stdout: Buffer.alloc(0),
          stderr: Buffer.from(stderr),
          ...over,
        });
      return createRelabel({ run }, '');
    };
    const gone = "chcon: cannot access 'x': No such file or directory\n";
    await ends(gone)([dir], LABEL);
    await assert.rejects(
      ends(`${gone}chcon: failed to change context of 'y': Permission denied\n`)([dir], LABEL),
      /denied$/,
    );
    await assert.rejects(ends(gone, { truncated: true })([dir], LABEL), isReason('HostFailed'));
    await assert.rejects(ends('', { exitCode: null, timedOut: true })([dir], LABEL), /did not end within/);
  });
});

describe('SELinux of the daemon', () => {
  it('is off unless the node has it and the configuration says so', async (t) => {
    const labelled: string[] = [];
    const reported: string[] = [];
    const policyDir = await policyWith(t, {});
    const prepare = (enableSelinux: boolean, selinux: boolean, problem?: string) =>
      prepareSelinux({
        config: { enableSelinux },
        node: { selinux },
        pauseRootfs: '/pause',
        relabel: async (paths, label) => {
          if (problem !== undefined) throw new Error(problem);
          labelled.push(`${paths.join()} ${label}`);
        },
        report: (message) => void reported.push(message),
        policyDir,
      });
    assert.deepEqual([await prepare(false, true), await prepare(true, false)], [null, null]);
    assert.deepEqual([labelled, reported], [[], []]);
    const { path: _, ...contexts } = usual;
    assert.deepEqual(await prepare(true, true), contexts);
    assert.deepEqual(labelled, [`/pause ${usual.file}`]);
    assert.match(reported.join(), /no lxc_contexts/);
    assert.deepEqual(await prepare(true, true, 'no chcon'), contexts);
    assert.equal(reported.at(-1), 'no chcon');
  });
});
