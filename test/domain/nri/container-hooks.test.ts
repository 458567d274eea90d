/** Where in a container's life NRI plugins are asked, and what follows from what they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerNow } from '../../../src/domain/nri/of-state.ts';
import { readState, writeState } from '../../../src/domain/turn/snapshot.ts';
import type { LinuxContainerAdjustment } from '../../../src/domain/model/nri.ts';
import { DECISION_RULES } from '../../../src/domain/model/rules.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  CONTAINER,
  createContainer,
  createdContainer,
  exits,
  fails,
  nodeStarts,
  pulledImage,
  readyPod,
  removeContainer,
  restart,
  runningContainer,
  shimSays,
  startContainer,
  stopContainer,
  succeeds,
} from '../happenings.ts';
import { answered, answers, closes, plugin, registers, requested, says } from './plugin-happenings.ts';

const all = plugin(
  '10',
  'all',
  'CreateContainer',
  'PostCreateContainer',
  'StartContainer',
  'PostStartContainer',
  'StopContainer',
  'RemoveContainer',
);
const creating = plugin('20', 'creating', 'CreateContainer');

const env = (name: string, value: string) =>
  answers(name, { hook: 'CreateContainer', adjust: { env: [`PLUGIN=${value}`] } });

test('who registers is told what there is, and is asked from then on', () => {
  const story = given(createdContainer).when(registers(all));
  story.follows({ asks: ['SynchronizePlugin'] });
  const { pods, containers } = requested(story.state, 'SynchronizePlugin');
  assert.deepEqual(
    [[...pods].length, [...containers].map(({ id, state }) => `${id} ${state}`)],
    [1, [`${CONTAINER} CONTAINER_CREATED`]],
  );
  assert.deepEqual(story.state.nriPlugins, [all]);
});

test('who could not be told what there is, is gone, and so is whoever is closed, and all of them at a restart', () => {
  assert.equal(given(registers(all)).when(fails('SynchronizePlugin')).state.nriPlugins, undefined);
  assert.deepEqual(given(registers(all), registers(creating)).when(closes(all.id)).state.nriPlugins, [creating]);
  assert.equal(given(registers(all)).when(restart()).state.nriPlugins, undefined);
});

test('a snapshot has the plugins', () => {
  const { state } = given(registers(all), registers(creating));
  assert.deepEqual(readState(writeState(state)).nriPlugins, [all, creating]);
});

test('plugins are asked before the files are made, in the order of their indices', () => {
  const story = given(registers(creating), registers(all), pulledImage, readyPod, createContainer()).when(
    succeeds('InspectContainer'),
  );
  story.follows({ asks: ['CallPlugins'] });
  const effect = requested(story.state, 'CallPlugins');
  assert.deepEqual(
    [effect.hook, effect.plugins.map(({ name }) => name), effect.container?.id],
    ['CreateContainer', ['all', 'creating'], CONTAINER],
  );
});

const created = [
  registers(all),
  registers(creating),
  pulledImage,
  readyPod,
  createContainer(),
  succeeds('InspectContainer'),
];
const asking = given.bind(null, ...created);

test('what plugins change is written down with its owners, and is in the spec', () => {
  const story = asking().when(answered('CreateContainer', env('10-all', 'yes')));
  story.follows({ records: ['container.adjusted'], asks: ['PrepareContainer'] });
  assert.deepEqual(story.state.containers.get(CONTAINER)?.nri?.adjusted?.owners.compound, {
    Env: { PLUGIN: '10-all' },
  });
  assert.ok(requested(story.state, 'PrepareContainer').bundle.spec.process.env.includes('PLUGIN=yes'));
});

for (const [what, linux, said] of [
  [
    'network interfaces that the OCI runtime can not move',
    { netDevices: { eth1: { name: 'net1' } } },
    /^an NRI plugin asks for the network interfaces "eth1", which the OCI runtime /,
  ],
  [
    'a memory policy that the OCI runtime can not set',
    { memoryPolicy: { mode: 'MPOL_BIND', nodes: '0' } },
    /^an NRI plugin asks for the memory policy "MPOL_BIND", which the OCI runtime /,
  ],
] as const)
  test(`a container of which a plugin wants ${what} is refused`, () => {
    const wanted = answers('10-all', { hook: 'CreateContainer', adjust: { linux } });
    given(nodeStarts({ ...FACTS, rules: 10 }), ...created)
      .when(answered('CreateContainer', wanted))
      .follows({ records: ['container.adjusted'], asks: ['PrepareContainer'] });
    const refused = asking().when(answered('CreateContainer', wanted));
    const { reason, message } = refused.state.containers.get(CONTAINER)?.failure ?? assert.fail('it was not refused');
    assert.equal(reason, 'HostLacks');
    assert.match(message, said);
  });

test('limits that plugins set are what a change of limits begins with', () => {
  const cpu = answers('10-all', {
    hook: 'CreateContainer',
    adjust: { linux: { resources: { cpu: { shares: '77' } } } },
  });
  const story = asking().when(
    answered('CreateContainer', cpu),
    succeeds('PrepareContainer'),
    call({
      method: 'UpdateContainerResources',
      containerId: CONTAINER,
      resources: { memoryLimitInBytes: '1000000000' },
    }),
    succeeds('CreateTask'),
    succeeds('DeleteTask'),
  );
  assert.deepEqual(requested(story.state, 'UpdateContainer').resources.cpu?.shares, 77);
});

test('of limits that plugins set, those stay that no change names; plugins are told what holds', () => {
  const resources = {
    memory: { limit: '7000000', reservation: '5' },
    cpu: { shares: '77', quota: '5000' },
    pids: { limit: '9' },
  };
  const set = answers('10-all', { hook: 'CreateContainer', adjust: { linux: { resources } } });
  const update = { method: 'UpdateContainerResources', containerId: CONTAINER } as const;
  const { state } = asking().when(
    answered('CreateContainer', set),
    allSucceeds,
    call({ ...update, plugin: '10-all', resources: { cpuShares: '300', memoryLimitInBytes: '9000000' } }),
    allSucceeds,
  );
  const container = state.containers.get(CONTAINER) ?? assert.fail();
  const left = { memory: { reservation: '5' }, pids: { limit: '9' } };
  assert.deepEqual(container.nri?.adjusted?.adjust.linux?.resources, left);
  const told = containerNow(state, FACTS, container).linux?.resources;
  assert.deepEqual(told?.memory, { limit: '9000000', reservation: '5' });
  assert.deepEqual([told.cpu?.shares, told.cpu?.quota, told.pids], ['300', '5000', { limit: '9' }]);
});

test('names in what plugins change are looked up before the spec is made', () => {
  const device = answers('10-all', { hook: 'CreateContainer', adjust: { cdiDevices: ['vendor.com/class=one'] } });
  const story = asking().when(answered('CreateContainer', device));
  story.follows({ records: ['container.adjusted'], asks: ['InspectContainer'] });
  assert.deepEqual(requested(story.state, 'InspectContainer').questions.cdiDevices, ['vendor.com/class=one']);
  const adjust = { linux: { resources: { blockioClass: 'slow' } } };
  const slow = asking().when(answered('CreateContainer', answers('10-all', { hook: 'CreateContainer', adjust })));
  assert.equal(requested(slow.state, 'InspectContainer').questions.blockIOClass, 'slow');
});

test('a CDI device of a plugin with a class of RDT is refused where there is no resctrl, unless a plugin takes the class away', () => {
  const facts = { user: { uid: 0, gid: 0, additionalGids: [] }, devices: [], mounts: [] };
  const found = succeeds('InspectContainer', { facts: { ...facts, cdi: [{ intelRdt: { closID: 'gold' } }] } });
  const wanting = (linux: LinuxContainerAdjustment, rules = DECISION_RULES) => {
    const adjust = { cdiDevices: ['vendor.com/class=one'], linux };
    const asked = answered('CreateContainer', answers('10-all', { hook: 'CreateContainer', adjust }));
    return given(nodeStarts({ ...FACTS, rules }), ...created, asked).when(found);
  };
  wanting({ rdt: { remove: true } }).follows({ asks: ['PrepareContainer'] });
  wanting({}, 10).follows({ asks: ['PrepareContainer'] });
  const { reason, message } = wanting({}).state.containers.get(CONTAINER)?.failure ?? assert.fail('it was not refused');
  assert.equal(reason, 'HostLacks');
  assert.match(
    message,
    /^an NRI plugin asks for a CDI device with a class of Intel RDT, but this node has no resctrl: /,
  );
});

test('two that set the same thing fail the creation, with both names; what was announced is stopped and removed', () => {
  const story = asking().when(answered('CreateContainer', env('10-all', 'a'), env('20-creating', 'b')));
  story.follows({ records: ['container.failed'], asks: ['CallPlugins'] });
  assert.equal(requested(story.state, 'CallPlugins').hook, 'StopContainer');
  const removing = asking(answered('CreateContainer', env('10-all', 'a'), env('20-creating', 'b'))).when(
    answered('StopContainer'),
  );
  removing.follows({ asks: ['CallPlugins'] });
  assert.equal(requested(removing.state, 'CallPlugins').hook, 'RemoveContainer');
  const gone = asking(
    answered('CreateContainer', env('10-all', 'a'), env('20-creating', 'b')),
    answered('StopContainer', says('10-all', 'refused')),
  ).when(answered('RemoveContainer', says('10-all', 'refused')));
  gone.follows({ records: ['container.removed'], answers: ['CreateContainer PluginConflict'] });
});

test('a veto fails the creation in the words of the plugin; who does not answer vetoes nothing', () => {
  const story = asking().when(
    answered('CreateContainer', says('10-all', 'refused', 'not today')),
    answered('StopContainer'),
    answered('RemoveContainer'),
  );
  const failure = story.events.flatMap((event) => (event.type === 'call.completed' ? [event.body.failure] : []))[0];
  assert.deepEqual(failure, {
    reason: 'PluginRefused',
    message: `NRI plugin "10-all" refused CreateContainer of container ${CONTAINER}: not today`,
  });
  asking()
    .when(answered('CreateContainer', says('10-all', 'closed'), says('20-creating', 'unanswered')))
    .follows({ asks: ['PrepareContainer'] });
});

test('a plugin that has to answer and does not fails the creation, which may be tried again', () => {
  const silent = {
    plugin: '10-all',
    durationNs: '1',
    failure: { kind: 'unanswered', isRequired: true, message: 'It did not answer within 50 ms.' },
  } as const;
  const { events } = asking().when(
    answered('CreateContainer', silent),
    answered('StopContainer'),
    answered('RemoveContainer'),
  );
  const failure = events.flatMap((event) => (event.type === 'call.completed' ? [event.body.failure] : []))[0];
  assert.equal(failure?.reason, 'PluginMissing');
  assert.match(
    failure.message,
    /^NRI plugin "10-all" has to answer CreateContainer of .* \(It did not answer within 50 ms\.\): .*raise request_timeout/,
  );
});

test('C19: a creation of which a restart left in doubt what plugins said is undone', () => {
  asking()
    .when(restart())
    .follows({
      records: ['container.failed', 'container.removed'],
      asks: ['ReconnectShim'],
      answers: ['CreateContainer Interrupted'],
    });
});

const createdWith = given.bind(null, registers(all), createdContainer);

test('plugins know the process before it runs, and hear of it when it does', () => {
  createdWith()
    .when(startContainer)
    .follows({ records: ['container.starting'], asks: ['CallPlugins'] });
  const made = createdWith().when(startContainer);
  const { hook, container } = requested(made.state, 'CallPlugins');
  assert.deepEqual([hook, container?.pid], ['StartContainer', 12]);
  createdWith(startContainer)
    .when(answered('StartContainer'))
    .follows({ asks: ['StartTask'] });
  createdWith(startContainer, answered('StartContainer'))
    .when(succeeds('StartTask'))
    .follows({ records: ['container.started'], asks: ['CallPlugins'], answers: ['StartContainer OK'] });
});

test('a veto fails the start; what was made is stopped and deleted', () => {
  const vetoed = createdWith(startContainer).when(answered('StartContainer', says('10-all', 'refused')));
  vetoed.follows({
    records: ['container.exited'],
    asks: ['CallPlugins'],
    answers: ['StartContainer PluginRefused'],
  });
  assert.equal(requested(vetoed.state, 'CallPlugins').hook, 'StopContainer');
  createdWith(startContainer, answered('StartContainer', says('10-all', 'refused')))
    .when(answered('StopContainer'))
    .follows({ asks: ['DeleteTask'] });
});

test('a task that could not be made fails the start', () => {
  const creating = given.bind(null, pulledImage, readyPod, createContainer(), succeeds('InspectContainer'));
  creating(succeeds('PrepareContainer'), registers(all), succeeds('SynchronizePlugin'), startContainer)
    .when(fails('CreateTask', 'RuntimeFailed'))
    .follows({ records: ['container.exited'], asks: ['CallPlugins'], answers: ['StartContainer RuntimeFailed'] });
});

test('C19: what became of a start that plugins were being asked about, the shim is asked', () => {
  const story = createdWith(startContainer, restart()).when(shimSays({ status: 'created' }));
  story.follows({ records: ['container.lost'], asks: ['DeleteTask'] });
});

const runningWith = given.bind(null, registers(all), runningContainer);

test('an exit is told before the task is deleted, once, and before who stopped it hears of that', () => {
  const stopped = runningWith(stopContainer('0'), succeeds('KillTask')).when(exits(137));
  stopped.follows({ records: ['container.exited'], asks: ['CallPlugins'] });
  assert.equal(requested(stopped.state, 'CallPlugins').hook, 'StopContainer');
  runningWith(stopContainer('0'), succeeds('KillTask'), exits(137))
    .when(answered('StopContainer', says('10-all', 'refused')))
    .follows({ asks: ['DeleteTask'], answers: ['StopContainer OK'] });
  const removed = runningWith(exits(), allSucceeds).when(removeContainer, succeeds('CleanContainer'));
  assert.equal(requested(removed.state, 'CallPlugins').hook, 'RemoveContainer');
  runningWith(exits(), allSucceeds, removeContainer, succeeds('CleanContainer'))
    .when(answered('RemoveContainer'))
    .follows({ records: ['container.removed'], answers: ['RemoveContainer OK'] });
});

test('a container that never ran is stopped and removed for plugins too', () => {
  const story = createdWith().when(removeContainer);
  assert.equal(requested(story.state, 'CallPlugins').hook, 'StopContainer');
});

test('a plugin that comes late is asked of what it was told', () => {
  const story = given(runningContainer, registers(all)).when(exits());
  assert.equal(requested(story.state, 'CallPlugins').hook, 'StopContainer');
});

test('nobody waits for a plugin that has gone', () => {
  runningWith(stopContainer('0'), succeeds('KillTask'), closes(all.id))
    .when(exits(137))
    .follows({ records: ['container.exited'], asks: ['DeleteTask'], answers: ['StopContainer OK'] });
});

test('nothing is asked of plugins that want to hear of something else', () => {
  given(registers(plugin('10', 'pods', 'RunPodSandbox')), createdContainer)
    .when(startContainer)
    .follows({ records: ['container.starting'], asks: ['StartTask'] });
});
