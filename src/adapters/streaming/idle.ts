/** Notices that nothing has moved for a while. */
import { TIMER_MS_MAX } from '../../platform/rpc/timeout.ts';

export interface IdleWatch {
  /** Something has moved. */
  readonly touch: () => void;
  readonly stop: () => void;
}

export const watchIdle = (timeoutMs: number, onIdle: () => void): IdleWatch => {
  const timer = setTimeout(onIdle, Math.min(timeoutMs, TIMER_MS_MAX));
  return {
    touch: () => {
      timer.refresh();
    },
    stop: () => {
      clearTimeout(timer);
    },
  };
};
