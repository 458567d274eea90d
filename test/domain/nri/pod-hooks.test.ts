/** Where in a pod's life NRI plugins are asked, and what follows from what they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPodAnnounced } from '../../../src/domain/nri/told.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  callerGoes,
  exits,
  fails,
  isDue,
  nodeStarts,
  POD,
  readyPod,
  removePod,
  restart,
  runningContainer,
  runPod,
  runPodWithPause,
  stopPod,
  succeeds,
} from '../happenings.ts';
import { answered, closes, plugin, registers, requested, says } from './plugin-happenings.ts';

const pods = plugin('10', 'pods', 'RunPodSandbox', 'StopPodSandbox', 'RemovePodSandbox');
const withPods = given.bind(null, registers(pods), succeeds('SynchronizePlugin'));

const made = [runPod(), succeeds('PreparePodSandbox'), succeeds('StartShim'), succeeds('PinNamespaces')] as const;

test('a pod is READY when plugins let it run', () => {
  const story = withPods(...made).when(succeeds('AttachNetwork'));
  story.follows({ asks: ['CallPlugins'] });
  const { hook, pod } = requested(story.state, 'CallPlugins');
  assert.deepEqual([hook, pod.ips], ['RunPodSandbox', ['10.0.0.2']]);
  withPods(...made, succeeds('AttachNetwork'))
    .when(answered('RunPodSandbox', says('10-pods', 'unanswered')))
    .follows({ records: ['sandbox.ready'], answers: ['RunPodSandbox OK'] });
});

test('a veto undoes the pod; plugins hear that it is stopped and removed, past what they say to it', () => {
  const asked = withPods.bind(null, ...made, succeeds('AttachNetwork'));
  const no = answered('RunPodSandbox', says('10-pods', 'refused', 'not here'));
  asked()
    .when(no)
    .follows({ records: ['sandbox.failed'], asks: ['CallPlugins', 'StopShim'] });
  asked(no)
    .when(answered('StopPodSandbox', says('10-pods', 'refused')))
    .follows({ asks: ['DetachNetwork'] });
  const stopped = [no, succeeds('StopShim'), answered('StopPodSandbox')] as const;
  const gone = asked(...stopped, succeeds('DetachNetwork'), succeeds('UnpinNamespaces'));
  assert.deepEqual([...gone.state.effects.values()].at(-1)?.intent.kind, 'CleanPodSandbox');
  const removing = asked(
    ...stopped,
    succeeds('DetachNetwork'),
    succeeds('UnpinNamespaces'),
    succeeds('CleanPodSandbox'),
  );
  assert.equal(requested(removing.state, 'CallPlugins').hook, 'RemovePodSandbox');
  removing
    .when(answered('RemovePodSandbox', says('10-pods', 'closed')))
    .follows({ records: ['sandbox.removed'], answers: ['RunPodSandbox PluginRefused'] });
});

test('a pod that plugins could not be asked about is undone with the words of that', () => {
  withPods(...made, succeeds('AttachNetwork'))
    .when(fails('CallPlugins', 'TimedOut'), succeeds('StopShim'), allSucceeds)
    .follows({
      records: ['sandbox.failed', 'sandbox.removed'],
      asks: ['CallPlugins', 'StopShim', 'DetachNetwork', 'UnpinNamespaces', 'CleanPodSandbox', 'CallPlugins'],
      answers: ['RunPodSandbox TimedOut'],
    });
});

test('plugins hear of a stop when no task is left, and before the network goes', () => {
  withPods(readyPod)
    .when(stopPod)
    .follows({ records: ['sandbox.stopping'], asks: ['CallPlugins', 'StopShim'] });
  withPods(readyPod, stopPod)
    .when(answered('StopPodSandbox'))
    .follows({ asks: ['DetachNetwork'] });
  const running = withPods(runningContainer).when(stopPod);
  running.follows({ records: ['sandbox.stopping', 'container.stopping'], asks: ['KillTask'] });
  const ended = withPods(runningContainer, stopPod, succeeds('KillTask'), exits(137)).when(succeeds('DeleteTask'));
  ended.follows({ asks: ['CallPlugins', 'StopShim'] });
  const withPause = withPods(runPodWithPause, allSucceeds).when(stopPod);
  withPause.follows({ records: ['sandbox.stopping'], asks: ['KillTask'] });
});

test('plugins hear once that a pod was stopped, and that it is gone when nothing of it is left', () => {
  withPods(readyPod, stopPod, allSucceeds)
    .when(stopPod)
    .follows({ answers: ['StopPodSandbox OK'] });
  const removing = withPods(readyPod, stopPod, allSucceeds, removePod).when(succeeds('CleanPodSandbox'));
  removing.follows({ asks: ['CallPlugins'] });
  assert.equal(requested(removing.state, 'CallPlugins').hook, 'RemovePodSandbox');
  withPods(readyPod, stopPod, allSucceeds, removePod, succeeds('CleanPodSandbox'))
    .when(answered('RemovePodSandbox'))
    .follows({ records: ['sandbox.removed'], answers: ['RemovePodSandbox OK'] });
});

test('nobody waits for a plugin that has gone', () => {
  withPods(readyPod, closes(pods.id))
    .when(stopPod)
    .follows({ records: ['sandbox.stopping'], asks: ['DetachNetwork', 'StopShim'] });
});

test('C19: a pod of which a restart left in doubt what plugins said is undone; a stop goes on', () => {
  withPods(...made, succeeds('AttachNetwork'))
    .when(restart())
    .follows({
      records: ['sandbox.failed'],
      asks: ['DetachNetwork', 'StopShim'],
      answers: ['RunPodSandbox Interrupted'],
    });
  withPods(readyPod, stopPod)
    .when(restart())
    .follows({ asks: ['DetachNetwork', 'StopShim'], answers: ['StopPodSandbox Interrupted'] });
});

test('a plugin that comes while others are asked about a pod is told of it', () => {
  const late = plugin('20', 'late', 'StopPodSandbox');
  const { state } = withPods(...made, succeeds('AttachNetwork')).when(registers(late));
  assert.equal([...requested(state, 'SynchronizePlugin').pods].length, 1);
});

test('why a pod is undone is recorded: plugins that come then are told of those that were READY', () => {
  const failing = [runPod(), succeeds('PreparePodSandbox'), fails('PinNamespaces')] as const;
  const unclaimed = [runPod(), callerGoes, allSucceeds, isDue('claim')] as const;
  const veto = [...made, succeeds('AttachNetwork'), answered('RunPodSandbox', says('10-pods', 'refused'))] as const;
  const rows: readonly (readonly [ReturnType<typeof given>, string | undefined, boolean])[] = [
    [given(...failing), 'notMade', false],
    [given(...unclaimed), 'unclaimed', true],
    [withPods(...veto), 'vetoed', true],
    // By older rules nothing is said of it, and the failure has to do.
    [given(nodeStarts({ ...FACTS, rules: 3 }), ...failing), undefined, false],
    [given(nodeStarts({ ...FACTS, rules: 3 }), ...unclaimed), undefined, true],
  ];
  for (const [{ state }, cause, announced] of rows) {
    const pod = state.sandboxes.get(POD) ?? assert.fail();
    assert.deepEqual([pod.goal, pod.cause, isPodAnnounced(pod)], ['undo', cause, announced]);
  }
});
