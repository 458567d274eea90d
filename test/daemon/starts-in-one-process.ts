/**
 * Starts daemons one after the other in this process, in the directories that are named on its command line, and says in
 * a line of JSON for each how its start failed and what of it is still there. For failed-start.test.ts, whose process
 * must not be a daemon. Ends by itself only when nothing at all is left open.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { serve } from '../../src/daemon/serve.ts';
import { messageOf } from '../../src/domain/model/errors.ts';

export interface Start {
  readonly dir: string;
  /** Listens at the socket before the daemon does. */
  readonly isSocketTaken?: boolean;
}

export interface Left {
  readonly message: string;
  readonly children: readonly string[];
  readonly threads: readonly string[];
  readonly openFiles: readonly string[];
  readonly files: readonly string[];
}

/** What may be gone by then, or was of the look itself. */
const orNothing = <T>(look: () => T, nothing: T): T => {
  try {
    return look();
  } catch {
    return nothing;
  }
};

const tasks = (): string[] => readdirSync('/proc/self/task').map((task) => `/proc/self/task/${task}`);
const read = (path: string): string => orNothing(() => readFileSync(path, 'utf8').trim(), '');

const leftOf = (dir: string): Omit<Left, 'message'> => ({
  children: tasks()
    .flatMap((task) => read(`${task}/children`).split(' '))
    .filter((pid) => pid !== '')
    .map((pid) => `${pid} ${read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')}`),
  threads: tasks()
    .map((task) => read(`${task}/comm`))
    .filter((name) => name.startsWith('scribe')),
  openFiles: readdirSync('/proc/self/fd')
    .map((fd) => orNothing(() => readlinkSync(`/proc/self/fd/${fd}`), ''))
    .filter((path) => path.startsWith(dir)),
  files: ['state/scribe.sock', 'state/scribe.pid', 'state/events.ttrpc'].filter((file) => existsSync(join(dir, file))),
});

const start = async ({ dir, isSocketTaken }: Start): Promise<string> => {
  const socket = join(dir, 'state/scribe.sock');
  const other = createServer();
  if (isSocketTaken) await new Promise<void>((listening) => other.listen(socket, listening));
  const overrides = { socket, root: join(dir, 'root'), state: join(dir, 'state'), cniConfDir: join(dir, 'cni') };
  const reloadConfig = () => loadConfig({ path: join(dir, 'config.toml'), overrides });
  try {
    await serve(await reloadConfig(), { version: 'test', reloadConfig });
    return 'it served';
  } catch (error) {
    return messageOf(error);
  } finally {
    if (isSocketTaken) await new Promise((closed) => other.close(closed));
  }
};

for (const each of JSON.parse(process.argv[2] ?? '[]') as readonly Start[]) {
  const message = await start(each);
  console.log(JSON.stringify({ message, ...leftOf(each.dir) } satisfies Left));
}
