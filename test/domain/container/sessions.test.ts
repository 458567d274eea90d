/** Exec and Attach allow sessions; each session that a client begins then is a call of its own. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  call,
  CONTAINER,
  createdContainer,
  removeContainer,
  restart,
  runningContainer,
  shimIsLost,
  succeeds,
} from '../happenings.ts';

const streams = { tty: false, stdin: false, stdout: true, stderr: true };
const command = { newId: 'session', containerId: CONTAINER, cmd: ['sh'] };
const exec = call({ method: 'Exec', ...command, ...streams });
const execSession = call({ method: 'ExecSession', allowedBy: 'exec', ...command, ...streams });
const attach = call({ method: 'Attach', newId: 'session', containerId: CONTAINER, ...streams });
const attachSession = call({
  method: 'AttachSession',
  allowedBy: 'attach',
  newId: 'session',
  containerId: CONTAINER,
  ...streams,
});

describe('Exec and Attach', () => {
  it('are answered at once, and do nothing yet', () => {
    given(runningContainer)
      .when(exec)
      .follows({ answers: ['Exec OK'] });
    given(runningContainer)
      .when(attach)
      .follows({ answers: ['Attach OK'] });
  });

  it('are refused where nothing runs', () => {
    given(createdContainer)
      .when(exec, attach)
      .follows({ answers: ['Exec WrongState', 'Attach WrongState'] });
    given()
      .when(exec, attach)
      .follows({ answers: ['Exec ContainerNotFound', 'Attach ContainerNotFound'] });
  });

  it('are refused when no stream is asked for, or a terminal with a stderr of its own', () => {
    const none = { ...streams, stdout: false, stderr: false };
    given(runningContainer)
      .when(call({ method: 'Exec', ...command, ...none }))
      .follows({ answers: ['Exec InvalidField'] });
    given(runningContainer)
      .when(call({ method: 'Attach', newId: 'session', containerId: CONTAINER, ...streams, tty: true }))
      .follows({ answers: ['Attach InvalidField'] });
  });
});

describe('a session', () => {
  it('runs its command, and is answered when that has ended', () => {
    given(runningContainer)
      .when(execSession, succeeds('StreamExec', { exitStatus: 1, stdinBytes: 0, stdoutBytes: 3, stderrBytes: 0 }))
      .follows({ asks: ['StreamExec'], answers: ['ExecSession OK'] });
  });

  it("is joined to the container's own streams, and is answered when either side has ended", () => {
    given(runningContainer)
      .when(attachSession, succeeds('StreamAttach', { stdinBytes: 0, stdoutBytes: 3, stderrBytes: 0 }))
      .follows({ asks: ['StreamAttach'], answers: ['AttachSession OK'] });
  });

  it('is looked at anew when it begins: its container may have gone since it was allowed', () => {
    given(createdContainer)
      .when(execSession, attachSession)
      .follows({ answers: ['ExecSession WrongState', 'AttachSession WrongState'] });
  });

  it('ends with the daemon', () => {
    given(runningContainer, execSession)
      .when(restart())
      .follows({ asks: ['ReconnectShim'], answers: ['ExecSession Interrupted'] });
  });

  it('is refused when its container is removed while its shim was not heard yet', () => {
    given(runningContainer, restart(), execSession, attachSession, removeContainer)
      .when(shimIsLost, succeeds('DeleteTask'), succeeds('CleanContainer'))
      .follows({
        records: ['container.lost', 'container.exited', 'container.removed'],
        asks: ['DeleteTask', 'CleanContainer'],
        answers: ['RemoveContainer OK', 'ExecSession ContainerNotFound', 'AttachSession ContainerNotFound'],
      });
  });
});
