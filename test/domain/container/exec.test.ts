/** ExecSync: one command in a running container; its output goes to the caller beside the journal. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  call,
  callerGoes,
  CONTAINER,
  createdContainer,
  exitedContainer,
  fails,
  restart,
  runningContainer,
  succeeds,
} from '../happenings.ts';

const execOf = (...cmd: readonly string[]) =>
  call({ method: 'ExecSync', newId: 'exec', containerId: CONTAINER, cmd, timeoutSeconds: '5' });
const exec = execOf('true');

describe('ExecSync', () => {
  it('runs the command, and answers when it has ended', () => {
    given(runningContainer)
      .when(exec, succeeds('RunExec'))
      .follows({ asks: ['RunExec'], answers: ['ExecSync OK'] });
  });

  it('answers OK also when the command fails: its exit code is part of the answer', () => {
    given(runningContainer, exec)
      .when(succeeds('RunExec', { exitStatus: 1, timedOut: false, stdoutBytes: 0, stderrBytes: 9 }))
      .follows({ answers: ['ExecSync OK'] });
  });

  it('fails when the command did not end in time', () => {
    given(runningContainer, exec)
      .when(succeeds('RunExec', { exitStatus: 137, timedOut: true, stdoutBytes: 0, stderrBytes: 0 }))
      .follows({ answers: ['ExecSync TimedOut'] });
  });

  it('fails with the words of a runtime that could not run it', () => {
    given(runningContainer, exec)
      .when(fails('RunExec', 'RuntimeFailed'))
      .follows({ answers: ['ExecSync RuntimeFailed'] });
  });

  it('goes on when its caller goes', () => {
    given(runningContainer, exec).when(callerGoes).follows({});
  });

  it('is refused where nothing runs', () => {
    given(createdContainer)
      .when(exec)
      .follows({ answers: ['ExecSync WrongState'] });
    given(exitedContainer)
      .when(exec)
      .follows({ answers: ['ExecSync WrongState'] });
    given()
      .when(exec)
      .follows({ answers: ['ExecSync ContainerNotFound'] });
  });

  it('is refused without a command', () => {
    given(runningContainer)
      .when(execOf())
      .follows({ answers: ['ExecSync InvalidField'] });
  });

  it('is interrupted by a restart of the daemon', () => {
    given(runningContainer, exec)
      .when(restart())
      .follows({ asks: ['ReconnectShim'], answers: ['ExecSync Interrupted'] });
  });
});
