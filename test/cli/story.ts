/** A story that the real engine writes down, for histories to tell; and how the rows of a table are read. */
import type { CallReply } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { exitOf, idOf } from '../engine/rig.ts';
import { kubelet, type Node, recordsOf, startNode } from './support.ts';

export const image = 'registry.test/app:1';
const crictl = { pid: 4711, uid: 1000, executable: '/opt/bin/crictl (deleted)', startTicks: '9' };
/** When the story begins. */
export const startNs = 1_800_000_000_000_000_000n;

const pod = (name: string, namespace = 'default'): CallDraft => ({
  method: 'RunPodSandbox',
  config: { metadata: { name, namespace, uid: `${namespace}-${name}` } },
  runtimeHandler: '',
});

const container = (podSandboxId: string, name: string, from = image): CallDraft => ({
  method: 'CreateContainer',
  podSandboxId,
  config: { metadata: { name }, image: { image: from } },
});

export interface Story {
  readonly web: string;
  readonly nginx: string;
  readonly other: string;
  readonly records: readonly JournalRecord[];
}

/** Two pods: web of default is run and removed, another web of test stays and its container dies. */
export const tell = async (): Promise<Story> => {
  let fails = false;
  let pauseHeeds = true;
  const node: Node = await startNode({
    perform: {
      KillTask: async ({ podSandboxId, containerId }) => {
        if (pauseHeeds) setImmediate(() => void node.engine.observe(exitOf(podSandboxId, containerId, 137, 11)));
        return { alreadyGone: false };
      },
      RunExec: async () => ({ exitStatus: 3, timedOut: false, stdoutBytes: 1, stderrBytes: 0 }),
      AttachNetwork: async () => {
        if (fails) throw new FailureError('CniFailed', 'the bridge \u001b[31mburns');
        return { ips: ['10.0.0.2'], result: {} };
      },
    },
  });
  const ask = async (draft: CallDraft, caller = kubelet): Promise<CallReply> => {
    await node.advance(1000);
    return node.ask(draft, caller);
  };
  await ask({ method: 'PullImage', image, credentials: null });
  const web = idOf(await ask(pod('web')));
  const nginx = idOf(await ask(container(web, 'nginx')));
  await ask({ method: 'StartContainer', containerId: nginx });
  await ask({ method: 'ExecSync', containerId: nginx, cmd: ['cat', '/etc/hostname'], timeoutSeconds: '1' }, crictl);
  const other = idOf(await ask(pod('web', 'test')));
  const lost = idOf(await ask(container(other, 'nginx')));
  await ask({ method: 'StartContainer', containerId: lost });
  await node.engine.observe(exitOf(other, lost, 0));
  await node.advance(1000);
  await node.engine.observe(exitOf(web, nginx, 137));
  await ask({ method: 'RemoveContainer', containerId: nginx });
  await ask({ method: 'RemovePodSandbox', podSandboxId: web });
  fails = true;
  await ask(pod('unlucky'));
  await ask(container(other, 'second', 'nowhere.test/none:1'));
  await ask({ method: 'Unimplemented', rpc: 'PortForward' });
  pauseHeeds = false;
  void ask({ method: 'StopPodSandbox', podSandboxId: other });
  await node.advance(1000);
  return { web, nginx, other, records: recordsOf(node) };
};

/** The first record of this type on the stream of the thing with this id; NaN where there is none. */
export const seqOf = ({ records }: Story, type: string, id: string): number =>
  records.find((record) => record.type === type && record.stream.endsWith(id))?.seq ?? Number.NaN;

/** Cells of a table, by the titles of their columns. */
export const rowsOf = (text: string): Record<string, string>[] => {
  const [head = '', ...lines] = text.trimEnd().split('\n');
  const starts = [...head.matchAll(/\S+/g)].map(({ index, 0: title }) => ({ index, title }));
  return lines.map((line) =>
    Object.fromEntries(
      starts.map(({ index, title }, column) => [title, line.slice(index, starts[column + 1]?.index).trimEnd()]),
    ),
  );
};
