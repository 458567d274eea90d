/** Notices that nothing has moved for a while. */
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
