/** StopContainer, and how a container ends: by a signal, after its grace, by itself, or unseen while the daemon was away. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerExitOf } from '../../../src/domain/model/container-state.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  CONTAINER,
  createContainer,
  createdContainer,
  evictContainer,
  exitedContainer,
  exits,
  fails,
  isDue,
  nodeStarts,
  pulledImage,
  readyPod,
  removeContainer,
  restart,
  runningContainer,
  shimIsGone,
  shimSays,
  startContainer,
  stopContainer,
  succeeds,
} from '../happenings.ts';

const EXIT = { pid: 12, exitStatus: 7, exitedAtNs: '1800000000000000005', oomKills: 0 };

describe('StopContainer', () => {
  it('sends the stop signal, and waits for as long as it was given', () => {
    given(runningContainer)
      .when(stopContainer('30'), succeeds('KillTask'))
      .follows({ records: ['container.stopping'], asks: ['KillTask', 'wait: grace'] });
  });

  it('answers when the exit is written down', () => {
    given(runningContainer, stopContainer('30'), succeeds('KillTask'))
      .when(exits(143))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'], answers: ['StopContainer OK'] });
  });

  it('kills what has not ended in time', () => {
    given(runningContainer, stopContainer('30'), succeeds('KillTask'))
      .when(isDue('grace'))
      .follows({ asks: ['KillTask'] });
  });

  it('kills at once when no time is given, also where another stop still waits (C4)', () => {
    given(runningContainer)
      .when(stopContainer('0'))
      .follows({ records: ['container.stopping'], asks: ['KillTask'] });
    given(runningContainer, stopContainer('30'), succeeds('KillTask'))
      .when(stopContainer('0'))
      .follows({ records: ['container.stopping'], asks: ['KillTask'] });
  });

  it('is told of a container that an NRI plugin evicts, also where a client stops it more gently before or after', () => {
    const eviction = { plugin: '50-mover', reason: 'its cores are wanted' };
    const evict = evictContainer(eviction);
    for (const stops of [[evict], [stopContainer('30'), evict], [evict, stopContainer('30')]]) {
      const { state } = given(runningContainer, ...stops, allSucceeds).when(exits(137));
      assert.equal(
        containerExitOf(state.containers.get(CONTAINER))?.message,
        'It was evicted by the NRI plugin 50-mover: its cores are wanted',
      );
    }
    const restarted = given(runningContainer, evict, restart(), allSucceeds).when(exits(137));
    assert.match(containerExitOf(restarted.state.containers.get(CONTAINER))?.message ?? '', /its cores are wanted/);
    const older = given(nodeStarts({ ...FACTS, rules: 3 }), runningContainer, evict, allSucceeds).when(exits(137));
    assert.equal(containerExitOf(older.state.containers.get(CONTAINER))?.message, '');
  });

  it('keeps a container that an NRI plugin evicts before it is started from being started, also after a restart', () => {
    const evict = evictContainer({ plugin: '50-mover', reason: 'its cores are wanted' });
    const again = evictContainer({ plugin: '60-late', reason: 'another' });
    // What was made ahead of its start is of no more use.
    given(createdContainer)
      .when(evict)
      .follows({ records: ['container.stopping'], asks: ['DeleteTask'], answers: ['StopContainer OK'] });
    const creating = [pulledImage, readyPod, createContainer()];
    for (const before of [
      [createdContainer, evict, allSucceeds, again],
      [createdContainer, evict, allSucceeds, restart()],
      [...creating, evict, allSucceeds, allSucceeds],
    ]) {
      const start = given(...before).when(startContainer);
      start.follows({ answers: ['StartContainer PluginRefused'] });
      const [message] = start.events.flatMap(({ type, body }) =>
        type === 'call.completed' ? [body.failure?.message ?? ''] : [],
      );
      assert.match(message ?? '', /"50-mover" evicted it before it was started \(its cores are wanted\)/);
    }
    assert.equal(given(createdContainer, evict, removeContainer, allSucceeds, allSucceeds).state.containers.size, 0);
    // Anybody else's stop of what does not run is none, and no eviction was by older rules.
    const started = { records: ['container.starting'], asks: ['StartTask'] };
    given(createdContainer, stopContainer('0')).when(startContainer).follows(started);
    given(nodeStarts({ ...FACTS, rules: 10 }), createdContainer, evict)
      .when(startContainer)
      .follows(started);
  });

  it('answers all who asked by one exit', () => {
    given(runningContainer, stopContainer('30'), stopContainer('0'), allSucceeds)
      .when(exits(137))
      .follows({
        records: ['container.exited'],
        asks: ['DeleteTask'],
        answers: ['StopContainer OK', 'StopContainer OK'],
      });
  });

  it('has the shim asked when a killed task does not tell of its end', () => {
    given(runningContainer, stopContainer('0'), succeeds('KillTask'))
      .when(isDue('exit'))
      .follows({ asks: ['ReconnectShim'] });
  });

  it('has the shim asked how a task does that could not be signalled: it may have ended untold, or is signalled again', () => {
    const failed = [runningContainer, stopContainer('0'), fails('KillTask')];
    given(...failed.slice(0, 2))
      .when(fails('KillTask'))
      .follows({ asks: ['wait: exit'], answers: ['StopContainer HostFailed'] });
    given(...failed)
      .when(isDue('exit'))
      .follows({ asks: ['ReconnectShim'] });
    given(...failed, isDue('exit'))
      .when(shimSays({ status: 'running' }))
      .follows({ asks: ['KillTask'] });
    const exit = { pid: 12, exitStatus: 137, exitedAtNs: '1800000000000000001', oomKills: 0 };
    given(...failed, isDue('exit'))
      .when(shimSays({ status: 'stopped', exit }))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'] });
  });

  it('has it asked again when it was asked too soon: the task was said to run, and no exit was told of since (rules 10)', () => {
    const asked = [runningContainer, stopContainer('0'), succeeds('KillTask'), isDue('exit')];
    given(...asked)
      .when(shimSays({ status: 'running' }))
      .follows({ asks: ['wait: exit'] });
    given(...asked, shimSays({ status: 'running' }))
      .when(isDue('exit'))
      .follows({ asks: ['ReconnectShim'] });
    given(nodeStarts({ ...FACTS, rules: 9 }), ...asked)
      .when(shimSays({ status: 'running' }))
      .follows({});
  });

  it('answers OK for a container that does not run, or is not there', () => {
    given(createdContainer)
      .when(stopContainer())
      .follows({ answers: ['StopContainer OK'] });
    given(exitedContainer)
      .when(stopContainer())
      .follows({ answers: ['StopContainer OK'] });
    given()
      .when(stopContainer())
      .follows({ answers: ['StopContainer OK'] });
  });

  it('is carried on after a restart of the daemon, though its caller is told that it was interrupted (C19)', () => {
    given(runningContainer, stopContainer('30'))
      .when(restart(), shimSays({ status: 'running' }))
      .follows({ asks: ['ReconnectShim', 'KillTask', 'wait: grace'], answers: ['StopContainer Interrupted'] });
  });
});

describe('an exit', () => {
  it('is written down before its task is deleted (C3)', () => {
    given(runningContainer)
      .when(exits(3))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'] });
  });

  it('counts once, however often it is told (C3)', () => {
    given(runningContainer, exits(3)).when(exits(4)).follows({});
  });

  it('leaves a task that could not be deleted for later', () => {
    given(runningContainer, exits(3))
      .when(fails('DeleteTask'))
      .follows({ asks: ['wait: retry'] });
  });
});

describe('a container that ran when the daemon ended', () => {
  it('runs on when its shim says so', () => {
    given(runningContainer)
      .when(restart(), shimSays({ status: 'running' }))
      .follows({ asks: ['ReconnectShim'] });
  });

  it('that was found dead ends with the code that its shim tells, and with no other before (C18)', () => {
    given(runningContainer)
      .when(restart({ deadTasks: [CONTAINER] }))
      .follows({ asks: ['ReconnectShim'] });
    given(runningContainer, restart({ deadTasks: [CONTAINER] }))
      .when(shimSays({ status: 'stopped', exit: EXIT }))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'] });
  });

  it('is lost with its shim: what may be left of it is ended, and its code is not known', () => {
    given(runningContainer, restart())
      .when(shimIsGone, allSucceeds)
      .follows({ records: ['container.lost', 'container.exited'], asks: ['DeleteTask', 'StopShim'] });
  });
});
