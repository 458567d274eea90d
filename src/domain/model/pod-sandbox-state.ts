/** What the state of a pod says to whoever decides or reads. Must decide nothing. */
import type { PodLimits } from './records.ts';
import type { PodSandbox } from './state.ts';

/** The limits that hold for it: those it was made with, until they are changed. */
export const limitsOf = ({ limits, config }: PodSandbox): PodLimits =>
  limits ?? {
    ...(config.linux?.overhead === undefined ? {} : { overhead: config.linux.overhead }),
    ...(config.linux?.resources === undefined ? {} : { resources: config.linux.resources }),
  };

/** A sandbox that is still being made is nobody's business yet; one whose creation is being undone is shown NOTREADY. */
export const isShown = ({ phase }: PodSandbox): boolean => phase !== 'creating';
