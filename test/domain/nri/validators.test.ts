/** Validators: what they are asked while a container's files are made, and what follows from what they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  CONTAINER,
  createContainer,
  fails,
  nodeStarts,
  pulledImage,
  readyPod,
  removeContainer,
  restart,
  succeeds,
} from '../happenings.ts';
import { answered, answers, plugin, registers, requested, says } from './plugin-happenings.ts';

const HOOK = 'ValidateContainerAdjustment';
const changing = plugin('10', 'changing', 'CreateContainer', 'StopContainer', 'RemoveContainer');
const slow = plugin('20', 'slow', 'CreateContainer');
const strict = plugin('90', 'strict', HOOK);

const asking = given.bind(
  null,
  registers(strict),
  registers(slow),
  registers(changing),
  pulledImage,
  readyPod,
  createContainer(),
  succeeds('InspectContainer'),
);

const env = { env: ['PLUGIN=here'] };
const changes = answers('10-changing', {
  hook: 'CreateContainer',
  adjust: env,
  updates: [{ containerId: 'other', resources: { cpu: { shares: '5' } } }],
});
const rejects = answers('90-strict', { hook: HOOK, rejected: { reason: 'no such thing here' } });
const agrees = answers('90-strict', { hook: HOOK });

const changed = asking.bind(null, answered('CreateContainer', changes, says('20-slow', 'unanswered')));
/** Its files are there. */
const made = changed.bind(null, succeeds('PrepareContainer'));

test('validators are asked once all others have answered, while files are made', () => {
  const story = asking().when(answered('CreateContainer', changes));
  story.follows({ records: ['container.adjusted'], asks: ['CallPlugins', 'PrepareContainer'] });
  const { hook, plugins } = requested(story.state, 'CallPlugins');
  assert.deepEqual([hook, plugins], [HOOK, [strict]]);
});

test('they are told the container as it was, what others want of it and of others, who set what, and who was there', () => {
  const { container, proposal, pod } = requested(changed().state, 'CallPlugins');
  assert.ok(!JSON.stringify(container).includes('PLUGIN=here'));
  assert.equal(container?.podSandboxId, pod.id);
  assert.deepEqual(proposal, {
    adjust: env,
    updates: [{ containerId: 'other', resources: { cpu: { shares: '5' } } }],
    owners: {
      other: { simple: { CPUShares: '10-changing' }, compound: {} },
      [CONTAINER]: { simple: {}, compound: { Env: { PLUGIN: '10-changing' } } },
    },
    plugins: [
      { name: 'changing', index: '10' },
      { name: 'strict', index: '90' },
    ],
  });
});

test('limits that others set are not in the container that validators are told of', () => {
  const limits = { linux: { resources: { cpu: { shares: '77' } } } };
  const { state } = asking(
    answered('CreateContainer', answers('10-changing', { hook: 'CreateContainer', adjust: limits })),
  );
  const { container, proposal } = requested(state, 'CallPlugins');
  assert.notEqual(container?.linux?.resources?.cpu?.shares, '77');
  assert.equal(proposal?.adjust.linux?.resources?.cpu?.shares, '77');
});

test('the container is there when its files are and all agree, whichever comes last', () => {
  const there = { records: ['container.created'], asks: ['CreateTask'], answers: ['CreateContainer OK'] };
  changed().when(answered(HOOK, agrees)).follows({});
  changed().when(succeeds('PrepareContainer')).follows({});
  changed(answered(HOOK, agrees)).when(succeeds('PrepareContainer')).follows(there);
  changed(succeeds('PrepareContainer')).when(answered(HOOK, agrees)).follows(there);
});

test('what was made of a container that a validator rejects is taken away, once it is made', () => {
  const rejected = changed(answered(HOOK, rejects));
  rejected.when(succeeds('PrepareContainer')).follows({ asks: ['CallPlugins'] });
  const gone = { records: ['container.removed'], answers: ['CreateContainer PluginRefused'] };
  const told = answered('StopContainer');
  changed(succeeds('PrepareContainer'), answered(HOOK, rejects))
    .when(told)
    .follows({ asks: ['CleanContainer'] });
  changed(succeeds('PrepareContainer'), answered(HOOK, rejects), told, succeeds('CleanContainer'))
    .when(answered('RemoveContainer'))
    .follows(gone);
});

test('where files can not be made, the creation fails once validators have spoken', () => {
  changed()
    .when(fails('PrepareContainer'))
    .follows({ records: ['container.failed'] });
  changed(fails('PrepareContainer'))
    .when(answered(HOOK, agrees))
    .follows({ asks: ['CallPlugins'] });
});

test('names that others brought in are looked up when all agree, and nobody is asked again', () => {
  const device = answers('10-changing', { hook: 'CreateContainer', adjust: { cdiDevices: ['vendor.com/class=one'] } });
  const judged = asking(answered('CreateContainer', device));
  assert.equal(requested(judged.state, 'CallPlugins').hook, HOOK);
  judged.when(answered(HOOK, agrees)).follows({ asks: ['InspectContainer'] });
  asking(answered('CreateContainer', device), answered(HOOK, agrees))
    .when(succeeds('InspectContainer'))
    .follows({ asks: ['PrepareContainer'] });
});

test('one that rejects fails the creation in its own words; who was told of the container hears of its end', () => {
  const story = made().when(answered(HOOK, rejects));
  story.follows({ records: ['container.failed'], asks: ['CallPlugins'] });
  assert.equal(requested(story.state, 'CallPlugins').hook, 'StopContainer');
  const { events } = made(answered(HOOK, rejects), answered('StopContainer'), succeeds('CleanContainer')).when(
    answered('RemoveContainer'),
  );
  const failure = events.flatMap((event) => (event.type === 'call.completed' ? [event.body.failure] : []))[0];
  assert.deepEqual(failure, {
    reason: 'PluginRefused',
    message: `NRI plugin "90-strict" rejects container ${CONTAINER}: no such thing here`,
  });
});

test('one that answers an error, does not answer, or goes, has not agreed', () => {
  const reasons = { refused: 'PluginRefused', unanswered: 'PluginMissing', closed: 'PluginMissing' } as const;
  for (const [kind, reason] of Object.entries(reasons)) {
    const { state } = changed(answered(HOOK, says('90-strict', kind as keyof typeof reasons, 'it is not well')));
    const { failure } = state.containers.get(CONTAINER) ?? assert.fail();
    assert.equal(failure?.reason, reason);
    assert.match(failure.message, /"90-strict".*it is not well/);
  }
  made()
    .when(fails('CallPlugins'))
    .follows({ records: ['container.failed'], asks: ['CallPlugins'] });
});

test('validators are asked also where nobody else wants to be', () => {
  const alone = given.bind(null, registers(strict), pulledImage, readyPod, createContainer());
  const story = alone().when(succeeds('InspectContainer'));
  story.follows({ asks: ['CallPlugins', 'PrepareContainer'] });
  assert.deepEqual(requested(story.state, 'CallPlugins').proposal, {
    adjust: {},
    updates: [],
    owners: { [CONTAINER]: { simple: {}, compound: {} } },
    plugins: [{ name: 'strict', index: '90' }],
  });
  alone(succeeds('InspectContainer'), succeeds('PrepareContainer'), answered(HOOK, rejects))
    .when(succeeds('CleanContainer'))
    .follows({ records: ['container.removed'], answers: ['CreateContainer PluginRefused'] });
});

test('a container that is being removed waits for validators and for its files, and is not there before', () => {
  changed(removeContainer).when(answered(HOOK, agrees)).follows({});
  made(removeContainer)
    .when(answered(HOOK, agrees))
    .follows({ asks: ['CallPlugins'] });
});

test('C19: a creation of which a restart left in doubt what validators said is undone', () => {
  changed()
    .when(restart())
    .follows({
      records: ['container.failed'],
      asks: ['ReconnectShim', 'CleanContainer'],
      answers: ['CreateContainer Interrupted'],
    });
});

test('C13: by rules 5 files wait for validators', () => {
  const older = given.bind(
    null,
    nodeStarts({ ...FACTS, rules: 5 }),
    registers(strict),
    pulledImage,
    readyPod,
    createContainer(),
  );
  older()
    .when(succeeds('InspectContainer'))
    .follows({ asks: ['CallPlugins'] });
  older(succeeds('InspectContainer'))
    .when(answered(HOOK, agrees))
    .follows({ asks: ['PrepareContainer'] });
});

test('C13: a journal from before there were validators is decided as it was then', () => {
  given(nodeStarts({ ...FACTS, rules: 4 }), registers(strict), pulledImage, readyPod, createContainer())
    .when(succeeds('InspectContainer'))
    .follows({ asks: ['PrepareContainer'] });
});
