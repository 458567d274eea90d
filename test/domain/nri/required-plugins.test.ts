/** Plugins that have to be there: creations wait for them after a start, and fail without them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Happening } from '../given.ts';
import type { Event } from '../../../src/domain/model/records.ts';
import type { NriValidatorRules } from '../../../src/domain/model/nri-settings.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  createContainer,
  fails,
  inTurn,
  isDue,
  nodeStarts,
  POD,
  podConfig,
  pulledImage,
  readyPod,
  removeContainer,
  restart,
  runPod,
  runPodWithPause,
  succeeds,
} from '../happenings.ts';
import { answered, answers, closes, plugin, registers, says } from './plugin-happenings.ts';

const needed = plugin('10', 'needed', 'CreateContainer');
const TOLERATES = 'tolerate.me';
const REQUIRED = 'required-plugins.noderesource.dev';

const starts = (validator: NriValidatorRules, startupWaitMs = 15_000): Happening =>
  nodeStarts({ ...FACTS, nri: { validator, startupWaitMs } });

const NEEDING = { requiredPlugins: ['needed'], tolerateMissingPluginsAnnotation: TOLERATES };
const requiring = starts(NEEDING);
const waitingNoLonger = inTurn(requiring, isDue('plugins'));
const creating = inTurn(createContainer(), succeeds('InspectContainer'));
const podWith = (annotations: Record<string, string>): Happening =>
  inTurn(runPod(podConfig({ annotations })), allSucceeds);

const synchronized = succeeds('SynchronizePlugin');
/** It comes when the pod is there already. */
const comes = inTurn(registers(needed), synchronized);

const failureIn = (events: readonly Event[]) =>
  events.flatMap((event) => (event.type === 'call.completed' ? [event.body.failure] : []))[0];

test('where nothing has to be there, a start sets no timer', () => {
  given().when(nodeStarts()).follows({ records: [] });
  given()
    .when(requiring)
    .follows({ asks: ['wait: plugins'] });
  given()
    .when(starts({ requiredPlugins: ['needed'] }, 0))
    .follows({});
});

test('a container waits for a required plugin after a start, and is made when that knows what there is', () => {
  const waiting = given.bind(null, requiring, pulledImage, comes, readyPod, closes(needed.id));
  waiting(createContainer()).when(succeeds('InspectContainer')).follows({});
  waiting(creating)
    .when(registers(needed))
    .follows({ asks: ['SynchronizePlugin'] });
  waiting(creating, registers(needed))
    .when(synchronized)
    .follows({ asks: ['CallPlugins'] });
});

test('what has not come in time fails the creation, with its name, why, and what is to be done', () => {
  const story = given(requiring, pulledImage, comes, readyPod, closes(needed.id), creating).when(isDue('plugins'));
  story.follows({
    records: ['container.failed', 'container.removed'],
    answers: ['CreateContainer PluginMissing'],
  });
  assert.deepEqual(failureIn(story.events), {
    reason: 'PluginMissing',
    message:
      'NRI\'s default validator rejects container "app" of pod ns/pod: it needs NRI plugin "needed" (it is not connected): start it, or take it from nri.default_validator.required_plugins, or have the pod tolerate that by the annotation tolerate.me: "true".',
  });
});

test('later nobody waits, but for one that is being told what there is', () => {
  const later = given.bind(null, waitingNoLonger, pulledImage, readyPod);
  later(createContainer())
    .when(succeeds('InspectContainer'))
    .follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer PluginMissing'] });
  later(registers(needed), createContainer()).when(succeeds('InspectContainer')).follows({});
  later(registers(needed), creating)
    .when(synchronized)
    .follows({ asks: ['CallPlugins'] });
  later(registers(needed), creating)
    .when(fails('SynchronizePlugin'))
    .follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer PluginMissing'] });
});

const asked = given.bind(null, waitingNoLonger, comes, pulledImage, readyPod, creating);

test('one that does not answer fails the creation closed, and so does one that goes', () => {
  for (const kind of ['unanswered', 'closed'] as const) {
    const story = asked().when(answered('CreateContainer', says('10-needed', kind, 'It is in no state to.')));
    story.follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer PluginMissing'] });
    assert.match(failureIn(story.events)?.message ?? '', /"needed" \(It is in no state to\)/);
  }
});

const device = answers('10-needed', { hook: 'CreateContainer', adjust: { cdiDevices: ['vendor.com/class=one'] } });

test('one that answered and died before the container is made fails it too', () => {
  const story = asked(answered('CreateContainer', device), closes(needed.id)).when(succeeds('InspectContainer'));
  story.follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer PluginMissing'] });
  asked(closes(needed.id))
    .when(answered('CreateContainer', device))
    .follows({
      records: ['container.adjusted', 'container.failed', 'container.removed'],
      answers: ['CreateContainer PluginMissing'],
    });
});

test('one that is there and wants to hear of nothing is enough', () => {
  given(waitingNoLonger, registers(plugin('10', 'needed')), synchronized, pulledImage, readyPod, createContainer())
    .when(succeeds('InspectContainer'))
    .follows({ asks: ['PrepareContainer'] });
});

test('pods name more of them by annotation, and wait and fail without them', () => {
  const [optional, tolerant] = [starts({}), podWith({ [`${REQUIRED}/container.app`]: '[needed]' })];
  given(optional, pulledImage, tolerant, createContainer()).when(succeeds('InspectContainer')).follows({});
  given(optional, pulledImage, tolerant, creating)
    .when(isDue('plugins'))
    .follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer PluginMissing'] });
});

test('who tolerates it waits for nobody', () => {
  given(requiring, pulledImage, podWith({ [TOLERATES]: 'true' }))
    .when(createContainer())
    .follows({ records: ['container.requested'], asks: ['InspectContainer', 'PrepareContainer'] });
});

test('a pod that waits for them when the daemon ends is undone, as nobody is in touch with its shim', () => {
  given(requiring, runPodWithPause, allSucceeds)
    .when(requiring)
    .follows({
      records: ['sandbox.failed'],
      asks: ['wait: plugins', 'DetachNetwork', 'DeleteTask'],
      answers: ['RunPodSandbox Interrupted'],
    });
});

test('whatever was made of it, and however the daemon ended, a pod that waits for them is undone (C19)', () => {
  // Without a pause task it needs no shim, so nothing else tells that a reboot took its namespaces.
  for (const ends of [{}, { rebooted: true }, { deadTasks: [POD] }]) {
    const { state, events } = given(requiring, runPod(), allSucceeds).when(restart(ends), allSucceeds);
    assert.equal(state.sandboxes.size, 0, JSON.stringify(ends));
    assert.equal(failureIn(events)?.reason, 'Interrupted');
  }
  const before = { ...FACTS, nri: { validator: NEEDING, startupWaitMs: 15_000 }, rules: 8 };
  const { state } = given(restart({ facts: before }), runPod(), allSucceeds).when(restart({ rebooted: true }));
  assert.equal([...state.sandboxes.values()][0]?.goal, 'run', 'journals of before are decided again as they were');
});

test('a pod waits for required plugins like its containers, and goes on without them', () => {
  const { state } = given(requiring, runPod(), allSucceeds);
  assert.equal([...state.sandboxes.values()][0]?.phase, 'creating');
  const ready = { records: ['sandbox.ready'], answers: ['RunPodSandbox OK'] };
  given(requiring, runPod(), allSucceeds, registers(needed)).when(synchronized).follows(ready);
  given(requiring, runPod(), allSucceeds).when(isDue('plugins')).follows(ready);
});

test('a container that waits can be removed', () => {
  given(requiring, pulledImage, comes, readyPod, closes(needed.id), creating)
    .when(removeContainer)
    .follows({
      records: ['container.removing', 'container.removed'],
      answers: ['RemoveContainer OK', 'CreateContainer Cancelled'],
    });
});

test("scribe's own validator rejects before others are asked", () => {
  const strict = plugin('90', 'strict', 'ValidateContainerAdjustment');
  const hooks = answers('10-needed', { hook: 'CreateContainer', adjust: { hooks: { prestart: [{ path: '/hook' }] } } });
  const story = given(
    starts({ rejectOciHookAdjustment: true }),
    inTurn(registers(needed), registers(strict), synchronized),
    pulledImage,
    readyPod,
    creating,
  ).when(answered('CreateContainer', hooks));
  story.follows({
    records: ['container.adjusted', 'container.failed', 'container.removed'],
    answers: ['CreateContainer PluginRefused'],
  });
});
