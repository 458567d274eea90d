/**
 * Tells the service manager how the daemon is (sd_notify(3)): one datagram to the socket that NOTIFY_SOCKET names, a
 * path or, after "@", an abstract name. Without the variable nobody asked, and nothing is sent. Must never throw nor
 * wait: a manager that does not listen is no reason not to serve.
 */
import { sendDatagram } from './syscalls.ts';

export interface Notify {
  readonly ready: () => void;
  /** The configuration is being read again; `monoNs` is the monotonic clock, which tells the manager which reload it is. */
  readonly reloading: (monoNs: bigint) => void;
  readonly stopping: () => void;
}

const NS_PER_US = 1_000n;

/** `report` is told in a sentence why a message could not be sent. */
export const createNotify = (socketName: string | undefined, report: (message: string) => void): Notify => {
  const send = (state: string): void => {
    if (socketName === undefined || socketName === '') return;
    try {
      sendDatagram(socketName, Buffer.from(state));
    } catch (error) {
      report(`The service manager could not be told ${state.split('\n')[0]}: ${String(error)}`);
    }
  };
  return {
    ready: () => send(`READY=1\nSTATUS=serving\nMAINPID=${process.pid}`),
    reloading: (monoNs) => send(`RELOADING=1\nMONOTONIC_USEC=${monoNs / NS_PER_US}`),
    stopping: () => send('STOPPING=1\nSTATUS=ending; pods stay'),
  };
};
