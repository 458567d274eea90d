/** Signals process groups. Both the spawner and, should it die, its client end with this what is under way. */
import { errorCodeOf } from '../error-code.ts';

/** SIGKILL to a process group; one that is gone is nothing. */
export const killGroup = (processGroup: number): void => {
  try {
    process.kill(-processGroup, 'SIGKILL');
  } catch (error) {
    if (errorCodeOf(error) !== 'ESRCH') throw error;
  }
};
