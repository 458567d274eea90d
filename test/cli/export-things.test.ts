/** `scribe export` of chosen things: the records that a history of them shows, also of calls whose requests do not name them. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { exitOf, idOf } from '../engine/rig.ts';
import { IMAGE } from '../simulation/images.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { image } from './story.ts';
import { jsonLines, type Node, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

interface Line {
  readonly seq: number;
  readonly type: string;
  readonly call: number | null;
}

describe('an export of chosen things', () => {
  const owner = cleanupAfterAll();
  let root: Root;
  let [pod, container] = ['', ''];

  before(async () => {
    const node: Node = await startNode({
      perform: {
        KillTask: async ({ podSandboxId, containerId }) => {
          setImmediate(() => void node.engine.observe(exitOf(podSandboxId, containerId, 137, 11)));
          return { alreadyGone: false };
        },
      },
    });
    await node.ask({ method: 'PullImage', image, credentials: null });
    const metadata = { name: 'web', namespace: 'shop', uid: 'shop-web' };
    pod = idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' }));
    const config = { metadata: { name: 'nginx' }, image: { image: IMAGE.id } };
    container = idOf(await node.ask({ method: 'CreateContainer', podSandboxId: pod, config }));
    await node.ask({ method: 'StopPodSandbox', podSandboxId: pod });
    // It takes its containers with it.
    await node.ask({ method: 'RemovePodSandbox', podSandboxId: pod });
    await node.ask({ method: 'RemoveImage', image });
    root = await rootWith(owner, recordsOf(node));
  });

  const told = async (command: string, ...words: readonly string[]): Promise<Line[]> => {
    const { exitStatus, stdout, stderr } = await scribe([command, '--root', root.dir, ...words]);
    assert.equal(exitStatus, 0, stderr);
    return jsonLines<Line>(stdout).sort((one, other) => one.seq - other.seq);
  };
  const seqsOf = (lines: readonly Line[]): number[] => lines.map(({ seq }) => seq);

  for (const [what, choice] of [
    ['a container whose pod was removed with it', () => ['--container', container]],
    ['an image, by its id', () => ['--image', IMAGE.id]],
    ['an image, by its name', () => ['--image', image]],
    ['a pod', () => ['--pod', pod]],
    ['a namespace', () => ['--namespace', 'shop']],
  ] as const)
    test(`${what}: the records that history --events shows`, async () => {
      const history = await told('history', '--json', '--events', ...choice());
      const exported = await told('export', ...choice());
      assert.ok(history.length > 0);
      assert.deepEqual(seqsOf(exported), seqsOf(history));
    });

  test('who removed a pod is told of its containers, and who pulled an image of its id, to a SIEM', async () => {
    const operations = async (...words: string[]): Promise<(string | undefined)[]> => {
      const { stdout } = await scribe(['export', '--root', root.dir, '--format', 'ocsf', ...words]);
      return jsonLines<{ api?: { operation: string } }>(stdout).flatMap(({ api }) => api?.operation ?? []);
    };
    const ofContainer = ['CreateContainer', 'RemovePodSandbox'];
    assert.deepEqual(await operations('--container', container), ofContainer);
    const ofImage = ['PullImage', ...ofContainer, 'RemoveImage'];
    assert.deepEqual(await operations('--image', IMAGE.id), ofImage);
  });
});
