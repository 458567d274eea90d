/** Containers with CDI devices on the real OCI runtime: what they see of them, and that their values are kept secret. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, podConfig, removePod, runPod } from '../support/pods.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const secret = 'canary-of-a-cdi-device';

describe('CDI devices', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;

  before(async () => {
    dir = await tempDir(owner);
    await mkdir(join(dir, 'cdi'), { mode: 0o755 });
    await writeFile(join(dir, 'library'), 'of the vendor\n');
    const hook = `#!/bin/sh\ncat > /dev/null\necho "$1 $HOOK_WORD" >> ${dir}/hooks\n`;
    await writeFile(join(dir, 'hook'), hook, { mode: 0o755 });
    await writeFile(
      join(dir, 'cdi/vendor.yaml'),
      `cdiVersion: "0.7.0"
kind: vendor.com/gpu
containerEdits:
  env: [VENDOR=${secret}-1]
  mounts:
    - {hostPath: ${dir}/library, containerPath: /usr/lib/vendor, options: [ro, nosuid, nodev, bind]}
  hooks:
    - {hookName: createRuntime, path: ${dir}/hook, args: [hook, made], env: [HOOK_WORD=${secret}-2]}
    - {hookName: poststop, path: ${dir}/hook, args: [hook, ended]}
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - {path: /dev/vendor0, hostPath: /dev/zero, fileMode: 0440}
        - {path: /dev/vendor1, type: c, major: 1, minor: 11, permissions: r}
      additionalGids: [4444]
  - name: "1"
    containerEdits:
      env: [SECOND=yes]
`,
    );
    node = await startNode(owner, { config: `[runtime]\ncdi_spec_dirs = ["${dir}/cdi"]\n` });
  });

  test('are there in a container that asks for them by field and by annotation', async () => {
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'devices', busyboxName, ['sleep', '1000'], {
      container: { CDIDevices: [{ name: 'vendor.com/gpu=0' }], annotations: { 'cdi.k8s.io/x_y': 'vendor.com/gpu=1' } },
    });
    const shell = async (script: string): Promise<string> => {
      const cmd = ['sh', '-c', `(${script}) 2>&1`];
      return (await daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
    };
    assert.equal(await shell('echo $VENDOR $SECOND; cat /usr/lib/vendor'), `${secret}-1 yes\nof the vendor\n`);
    assert.equal(
      await shell('head -c 3 /dev/vendor0 | wc -c; stat -c %a,%t,%T /dev/vendor0; id -G'),
      '3\n440,1,5\n0 4444\n',
    );
    // The kernel's log: who may only read it cannot write to it, root or not.
    assert.match(await shell('echo x > /dev/vendor1'), /not permitted/);
    assert.match(await shell('echo x > /usr/lib/vendor'), /Read-only/);
    assert.equal(await readFile(join(dir, 'hooks'), 'utf8'), `made ${secret}-2\n`);
    await removePod(daemon, podSandboxId);
    assert.equal(await readFile(join(dir, 'hooks'), 'utf8'), `made ${secret}-2\nended \n`);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('C12: their values are nowhere in the journal or the log', async () => {
    const { dirs, log } = node.daemon;
    const search = (text: string) => run(['grep', '-rlaF', text, dirs.root]);
    assert.match((await search('vendor.com/gpu=0')).stdout, /journal\.db/);
    const found = await search(secret);
    assert.deepEqual([found.exitCode, found.stdout], [1, '']);
    assert.equal(log().includes(secret), false);
  });

  test('that nobody describes fail the creation, by name', async () => {
    const { runtime } = node.daemon.cri;
    const sandboxConfig = podConfig(node.daemon, 'unknown');
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const config = containerConfig('main', busyboxName, ['true'], { CDIDevices: [{ name: 'vendor.com/gpu=7' }] });
    await assert.rejects(
      runtime.createContainer({ podSandboxId, config, sandboxConfig }),
      withCode(
        GrpcCode.FAILED_PRECONDITION,
        /CDI_devices "vendor\.com\/gpu=7": no CDI spec describes it \(looked in .*\/cdi\)/,
      ),
    );
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
