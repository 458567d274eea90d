/**
 * Shims in places of their own (kept-shims.ts) that no pod has: what an earlier daemon had kept, or was just starting or
 * handing over when it died. The journal says which ones pods have; all others are ended, unless something runs in them:
 * that is for a person to decide (scribe journal clear-strays).
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../domain/model/errors.ts';
import type { ShimOrigin } from '../../../domain/model/tasks.ts';
import type { ShimContext } from '../context.ts';
import { endUnasked } from './end-shim.ts';
import { findShims, hasChildren } from './identify.ts';

type Clearing = Pick<ShimContext, 'timings' | 'log'>;

/** Ends what was started under that id, and takes its place away. Leaves both where containers run in it. */
export const clearOrigin = async (context: Clearing, { id, dir }: ShimOrigin): Promise<void> => {
  const { log } = context;
  const processes = await findShims(id);
  try {
    const busy = await Promise.all(processes.map(({ pid }) => hasChildren(pid)));
    if (busy.some(Boolean)) {
      log.warn({ shimId: id }, 'a shim that no pod has runs something, and is left alone: see scribe doctor');
      return;
    }
    if (await endUnasked(context, dir, processes)) await rm(dir, { recursive: true, force: true });
    else log.warn({ shimId: id }, 'a shim that no pod has does not end, not even by SIGKILL');
  } finally {
    for (const held of processes) held.release();
  }
};

/** `left`: names of directories in `shimsDir`. Never rejects: what cannot be cleared now is looked for at the next start. */
export const clearLeftShims = async (context: Clearing, shimsDir: string, left: readonly string[]): Promise<void> => {
  const clear = (id: string): Promise<void> =>
    clearOrigin(context, { id, dir: join(shimsDir, id) }).catch((error: unknown) => {
      context.log.warn({ shimId: id, error: messageOf(error) }, 'a shim of an earlier life is not ended yet');
    });
  await Promise.all(left.map(clear));
};
