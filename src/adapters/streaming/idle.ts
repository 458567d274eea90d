/** Notices that nothing has moved for a while. */

export interface IdleWatch {
  /** Something has moved. */
  readonly touch: () => void;
  readonly stop: () => void;
}

/** setTimeout's limit; waiting longer is waiting for that long. */
const timeoutMsMax = 2_147_483_647;

export const watchIdle = (timeoutMs: number, onIdle: () => void): IdleWatch => {
  const timer = setTimeout(onIdle, Math.min(timeoutMs, timeoutMsMax));
  return {
    touch: () => {
      timer.refresh();
    },
    stop: () => {
      clearTimeout(timer);
    },
  };
};
