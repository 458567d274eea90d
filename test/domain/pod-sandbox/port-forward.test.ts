/** PortForward allows connections; each that a client makes then is a call of its own. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call, POD, readyPod, runPod, succeeds } from '../happenings.ts';

const forwardOf = (port: number) => call({ method: 'PortForward', newId: 'forward', podSandboxId: POD, ports: [port] });
const connection = call({
  method: 'PortForwardSession',
  newId: 'connection',
  allowedBy: 'forward',
  podSandboxId: POD,
  port: 80,
});

describe('PortForward', () => {
  it('is answered at once, and does nothing yet', () => {
    given(readyPod)
      .when(forwardOf(80))
      .follows({ answers: ['PortForward OK'] });
  });

  it('is refused for what is no port, and for a pod that is not READY', () => {
    given(readyPod)
      .when(forwardOf(0))
      .follows({ answers: ['PortForward InvalidField'] });
    given(runPod())
      .when(forwardOf(80))
      .follows({ answers: ['PortForward PodSandboxNotFound'] });
  });

  it('has a call for each connection, which is answered when that is over', () => {
    given(readyPod)
      .when(connection, succeeds('StreamPort', { toPodBytes: 1, fromPodBytes: 2 }))
      .follows({ asks: ['StreamPort'], answers: ['PortForwardSession OK'] });
  });
});
