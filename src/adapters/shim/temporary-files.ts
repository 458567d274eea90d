/**
 * Temporary files of shims. They remove them within seconds, but not when they are killed, and process specs hold the values
 * of env. What is older than any start may take is forgotten; what is younger may be in use by a shim at this moment.
 */
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { messageOf } from '../../domain/model/errors.ts';

export interface TemporaryFiles {
  /** Removes what is old enough; never rejects but for what cannot be removed. */
  readonly removeForgotten: () => Promise<void>;
  /** A shim has died: what it left is removed when it is old enough. */
  readonly shimDied: () => void;
  readonly close: () => void;
}

/** Of one directory, which need not be there. */
export const createTemporaryFiles = (dir: string, olderThanMs: number, log: Pick<Logger, 'warn'>): TemporaryFiles => {
  let timer: NodeJS.Timeout | undefined;

  /** Resolves with whether something is left that is too young. */
  const remove = async (): Promise<boolean> => {
    let isLeft = false;
    const names = await readdir(dir).catch((): string[] => []);
    for (const path of names.map((name) => join(dir, name))) {
      const found = await lstat(path).catch(() => null);
      if (found === null) continue;
      if (found.mtimeMs < Date.now() - olderThanMs) await rm(path, { recursive: true, force: true });
      else isLeft = true;
    }
    return isLeft;
  };

  const notRemoved = (error: unknown): void =>
    log.warn({ error: messageOf(error) }, 'what a killed shim left of temporary files is not removed yet');

  const look = async (): Promise<void> => {
    timer = undefined;
    // Another may have died while this was waited for.
    if (await remove()) lookLater();
  };

  const lookLater = (): void => {
    timer ??= setTimeout(() => void look().catch(notRemoved), olderThanMs + 1).unref();
  };

  return {
    removeForgotten: async () => {
      await remove();
    },
    shimDied: lookLater,
    close: () => clearTimeout(timer),
  };
};
