/**
 * How far the daemon goes before the programs that it starts: whoever calls it waits for its event loop, which would wait in a
 * row with every plugin and runtime of all pods that start. What the kernel refuses is said in the log (C20).
 */
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { messageOf } from '../domain/model/errors.ts';
import { setNice } from '../platform/linux/own-process.ts';

type Log = Pick<Logger, 'info' | 'warn'>;

/** Once the spawner is there, which starts everything else, and keeps the priority that it was started with. */
export function goBeforeOthers({ nice }: Pick<Config['serve'], 'nice'>, log: Log): void {
  if (nice === 0) return;
  try {
    setNice(nice);
    log.info({ nice }, 'goes before what it starts');
  } catch (error) {
    log.warn({ nice, error: messageOf(error) }, 'cannot go before what it starts: CAP_SYS_NICE is missing');
  }
}
