/** Passes the sizes of a client's terminal on to a process: the newest, one at a time. */
import { messageOf } from '../../../domain/model/errors.ts';
import type { ProcessClient, TerminalSize } from '../../streaming/types.ts';
import type { ShimContext } from '../context.ts';
import type { TaskClient } from '../task-client.ts';

/** From when the process is `started`. */
export const followSize = (
  { timings, log }: ShimContext,
  client: TaskClient,
  call: { readonly id: string; readonly execId: string },
  { onResize }: Pick<ProcessClient, 'onResize'>,
  started: Promise<unknown>,
): void => {
  let wanted: TerminalSize | null = null;
  let sending = false;

  const send = async (): Promise<void> => {
    if (sending) return;
    sending = true;
    try {
      await started;
      while (wanted !== null) {
        const { width, height } = wanted;
        wanted = null;
        await client.resizePty({ ...call, width, height }, timings.callMs);
      }
    } catch (error) {
      log.debug({ ...call, error: messageOf(error) }, 'a terminal could not be resized');
    } finally {
      sending = false;
    }
  };
  onResize((size) => {
    wanted = size;
    void send();
  });
};
