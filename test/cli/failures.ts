/**
 * Twelve failures, staged on the real engine with simulated adapters: each gives the journal it left, and what an
 * engineer would then ask about. The words of other programs are those that they said on a real node.
 */
import { createHash } from 'node:crypto';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { TaskMemory } from '../../src/domain/model/tasks.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { exitOf, idOf, podConfig, type RigOptions, task } from '../engine/rig.ts';
import { type Node, recordsOf, startNode } from './support.ts';

export interface Failure {
  readonly title: string;
  /** What happened, for the page. */
  readonly story: string;
  /** What is asked about. */
  readonly thing: string;
  readonly records: readonly JournalRecord[];
}

const IMAGE = 'registry.test/app:1';

/** Ids that look as ids do, and are the same each time. */
const countedIds = (salt: string): (() => string) => {
  let count = 0;
  return () =>
    createHash('sha256')
      .update(`${salt} ${(count += 1)}`)
      .digest('hex');
};

/** A node whose pause tasks heed their signals. */
const start = async (salt: string, { perform, ...options }: RigOptions = {}): Promise<Node> => {
  const node: Node = await startNode({
    hex64: countedIds(salt),
    ...options,
    perform: {
      KillTask: async ({ podSandboxId, containerId }) => {
        if (podSandboxId === containerId)
          setImmediate(() => void node.engine.observe(exitOf(podSandboxId, containerId, 137, 11)));
        return { alreadyGone: false };
      },
      ...perform,
    },
  });
  return node;
};

const run: CallDraft = { method: 'RunPodSandbox', config: podConfig('web'), runtimeHandler: '' };

const create = (podSandboxId: string, more: object = {}): CallDraft => ({
  method: 'CreateContainer',
  podSandboxId,
  config: { metadata: { name: 'app' }, image: { image: IMAGE }, ...more },
});

const pull = (image = IMAGE): CallDraft => ({ method: 'PullImage', image, credentials: null });

/** A pod with a created container. */
const created = async (node: Node, more: object = {}) => {
  await node.ask(pull());
  await node.advance(400);
  const podSandboxId = idOf(await node.ask(run));
  await node.advance(250);
  const containerId = idOf(await node.ask(create(podSandboxId, more)));
  await node.advance(120);
  return { podSandboxId, containerId };
};

const running = async (node: Node, more: object = {}) => {
  const ids = await created(node, more);
  await node.ask({ method: 'StartContainer', containerId: ids.containerId });
  await node.advance(9_000);
  return ids;
};

/** An exit at the node's own time. */
const exits = (
  node: Node,
  { podSandboxId, containerId }: { readonly podSandboxId: string; readonly containerId: string },
  exitStatus: number,
  memory?: TaskMemory,
): Promise<void> => {
  const { exit, ...told } = exitOf(podSandboxId, containerId, exitStatus);
  const exitedAtNs = String(node.contents.rows.at(-1)?.record?.atNs ?? 0n);
  const oomKills = memory === undefined ? 0 : 1;
  return node.engine.observe({
    ...told,
    exit: { ...exit, exitedAtNs, oomKills, ...(memory === undefined ? {} : { memory }) },
  });
};

const stages: Readonly<Record<string, () => Promise<Omit<Failure, 'title'>>>> = {
  'Out of memory': async () => {
    const node = await start('oom');
    const limits = { linux: { resources: { memoryLimitInBytes: '67108864' } } };
    const ids = await running(node, limits);
    await node.engine.observe({ kind: 'TaskOomed', containerId: ids.containerId });
    const cgroup = `/kubepods/burstable/pod-web/${ids.containerId}`;
    await exits(node, ids, 137, { cgroup, limitBytes: '67108864', peakBytes: '67108864' });
    const story = 'A container uses more memory than its limit of 64 MiB.';
    return { story, thing: 'ns/web/app', records: recordsOf(node) };
  },

  'A command that is not there': async () => {
    const said =
      'OCI runtime create failed: unable to start container process: exec: "no-such-command": executable file not found in $PATH';
    const node = await start('command', {
      perform: {
        CreateTask: async ({ containerId, podSandboxId }) => {
          if (containerId === podSandboxId) return task(11);
          throw new FailureError('RuntimeFailed', said);
        },
      },
    });
    const { containerId } = await created(node, { command: ['no-such-command'] });
    await node.ask({ method: 'StartContainer', containerId });
    const story = 'The command of a container is in none of the directories of its PATH.';
    return { story, thing: 'ns/web/app', records: recordsOf(node) };
  },

  'An image that nobody pulled': async () => {
    const node = await start('image');
    const podSandboxId = idOf(await node.ask(run));
    await node.advance(50);
    await node.ask(create(podSandboxId));
    return {
      story: 'A container is to be made from an image that is not on the node.',
      thing: 'app',
      records: recordsOf(node),
    };
  },

  'CNI fails': async () => {
    const node = await start('cni', {
      perform: {
        AttachNetwork: async () => {
          await node.advance(1_500);
          throw new FailureError(
            'CniFailed',
            'CNI plugin "bridge" (ADD): failed to allocate for range 0: no IP addresses available in range set: 10.88.0.1-10.88.0.254',
          );
        },
      },
    });
    await node.ask(run);
    return { story: 'The address range of the node is used up.', thing: 'ns/web', records: recordsOf(node) };
  },

  "A plugin's veto": async () => {
    const node = await start('plugin', {
      perform: {
        CallPlugins: async ({ hook, plugins }) => ({
          answers: plugins.map(({ index, name }) => ({
            plugin: `${index}-${name}`,
            durationNs: '4000000',
            ...(hook === 'CreateContainer'
              ? { failure: { kind: 'refused' as const, message: 'images of registry.test are not signed' } }
              : {}),
          })),
        }),
      },
    });
    await node.engine.observe({
      kind: 'NriNoted',
      note: {
        type: 'nri.plugin.registered',
        body: { id: '10-policy@1', index: '10', name: 'policy', hooks: ['CreateContainer'] },
      },
    });
    await node.ask(pull());
    const podSandboxId = idOf(await node.ask(run));
    await node.advance(30);
    await node.ask(create(podSandboxId));
    return { story: 'An NRI plugin does not allow a container.', thing: 'ns/web/app', records: recordsOf(node) };
  },

  'A liveness probe': async () => {
    const node = await start('liveness', {
      perform: { RunExec: async () => ({ exitStatus: 1, timedOut: false, stdoutBytes: 0, stderrBytes: 31 }) },
    });
    const ids = await running(node);
    const { containerId } = ids;
    for (let probe = 0; probe < 3; probe += 1) {
      await node.ask({ method: 'ExecSync', containerId, cmd: ['cat', '/tmp/healthy'], timeoutSeconds: '1' });
      await node.advance(10_000);
    }
    const stop = node.ask({ method: 'StopContainer', containerId, timeoutSeconds: '30' });
    await node.advance(30_000);
    await exits(node, ids, 137);
    await stop;
    const story = 'The liveness probe of a container fails, and kubelet stops it; it does not heed SIGTERM.';
    return { story, thing: 'ns/web/app', records: recordsOf(node) };
  },

  'A reboot': async () => {
    const node = await start('reboot');
    const { podSandboxId, containerId } = await running(node);
    const again = await start('reboot again', {
      contents: node.contents,
      rebooted: true,
      deadTasks: [podSandboxId, containerId],
      nowNs: (node.contents.rows.at(-1)?.record?.atNs ?? 0n) + 95_000_000_000n,
    });
    await again.advance(10);
    return { story: 'The node is rebooted while a container runs.', thing: 'ns/web/app', records: recordsOf(again) };
  },

  'A shim that is killed': async () => {
    const node = await start('shim');
    const { podSandboxId } = await running(node);
    await node.engine.observe({ kind: 'ShimLost', podSandboxId });
    await node.advance(10);
    return { story: 'Somebody kills the shim of a pod.', thing: 'ns/web/app', records: recordsOf(node) };
  },

  'A disk that is full': async () => {
    let full = false;
    const node = await start('disk', { diskIsFull: () => full });
    await node.ask(pull());
    full = true;
    await node.engine.observe({ kind: 'NodeNoted', note: { type: 'disk.filled', body: { freeBytes: 4_096_000 } } });
    await node.advance(60_000);
    await node.ask(run);
    await node.engine.observe({
      kind: 'NodeNoted',
      note: { type: 'content.collected', body: { blobs: [], layers: [] } },
    });
    const story = 'The file system of the root directory has no room left, and kubelet wants a pod.';
    return { story, thing: 'ns/web', records: recordsOf(node) };
  },

  'A daemon that is killed while it makes a pod': async () => {
    const node = await start('kill', { perform: { AttachNetwork: () => new Promise(() => undefined) } });
    void node.ask(run);
    await node.advance(800);
    const again = await start('kill again', {
      contents: node.contents,
      nowNs: (node.contents.rows.at(-1)?.record?.atNs ?? 0n) + 2_000_000_000n,
    });
    await again.advance(10);
    const story = 'The daemon is killed with SIGKILL while a CNI plugin is under way.';
    return { story, thing: 'ns/web', records: recordsOf(again) };
  },

  'A registry that refuses': async () => {
    const node = await start('registry', {
      perform: {
        PullImage: async () => {
          await node.advance(350);
          throw new FailureError(
            'RegistryDenied',
            'Could not get registry.test/app:1: registry.test wants credentials for app and was given none.',
          );
        },
      },
    });
    await node.ask(pull());
    return { story: 'An image is in a registry that wants credentials.', thing: IMAGE, records: recordsOf(node) };
  },

  'A command that takes too long': async () => {
    const node = await start('exec', {
      perform: {
        RunExec: async () => {
          await node.advance(2_000);
          return { exitStatus: 137, timedOut: true, stdoutBytes: 0, stderrBytes: 0 };
        },
      },
    });
    const { containerId } = await running(node);
    await node.ask({ method: 'ExecSync', containerId, cmd: ['sleep', '60'], timeoutSeconds: '2' });
    const call = recordsOf(node).findLast(({ type }) => type === 'call.received');
    return {
      story: 'A command in a container runs into its timeout.',
      thing: String(call?.seq),
      records: recordsOf(node),
    };
  },
};

/** All of them, in the order of the page. */
export const stageFailures = async (): Promise<Failure[]> => {
  const failures: Failure[] = [];
  for (const [title, stage] of Object.entries(stages)) failures.push({ title, ...(await stage()) });
  return failures;
};
