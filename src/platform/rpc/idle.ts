/** Notices, once, that nothing has moved for a while. Keeps a process alive until then, or until it is stopped. */
import { timerMs } from './timeout.ts';

export interface IdleWatch {
  /** Something has moved. */
  readonly touch: () => void;
  readonly stop: () => void;
}

export const watchIdle = (timeoutMs: number, onIdle: () => void): IdleWatch => {
  const timer = setTimeout(onIdle, timerMs(timeoutMs));
  return {
    touch: () => {
      timer.refresh();
    },
    stop: () => {
      clearTimeout(timer);
    },
  };
};
