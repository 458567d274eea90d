/** The plugin in Go that plays what a script says (test/support/nri-plugins/scripted), and what it wrote down. */
import { existsSync, watch } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { goProgram } from '../../support/go-program.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';
import { type BackgroundProcess, startProcess } from '../../support/process.ts';

/** What is done at a hook; messages are in protobuf's JSON. */
export interface Act {
  readonly hook: string;
  readonly container?: string;
  readonly times?: number;
  readonly delayMs?: number;
  readonly crash?: true;
  readonly hang?: true;
  readonly veto?: string;
  readonly padBytes?: number;
  readonly adjust?: object;
  readonly update?: readonly object[];
  readonly evict?: readonly object[];
  readonly ask?: { readonly update?: readonly object[]; readonly evict?: readonly object[]; readonly times?: number };
}

export interface Script {
  readonly log?: string;
  readonly events?: readonly string[];
  readonly policy?: { readonly fail_request?: boolean; readonly keep_connected?: boolean };
  readonly acts?: readonly Act[];
}

/** A line that it wrote. */
export interface Told {
  readonly hook: string;
  readonly [key: string]: unknown;
}

const program = (): Promise<string> => goProgram('nri-plugins/scripted');
const WAIT_MS = 20_000;

/** Starts one that connects by itself; one that reconnects does so whenever its connection is lost. */
export const startScripted = async (
  owner: Owner,
  socketPath: string,
  script: Script,
  { index = '50', name = 'scripted', reconnects = false } = {},
): Promise<BackgroundProcess> => {
  const identity = ['-idx', index, '-name', name, '-socket', socketPath, ...(reconnects ? ['-reconnect'] : [])];
  return await startProcess(owner, [await program(), ...identity, '-script', JSON.stringify(script)]);
};

/** Puts one where it is launched from, with its script as its configuration. */
export const installScripted = async (
  { pluginDir, configDir }: { readonly pluginDir: string; readonly configDir: string },
  file: string,
  script: Script,
): Promise<void> => {
  await mkdir(pluginDir, { recursive: true });
  await mkdir(configDir, { recursive: true });
  await copyFile(await program(), join(pluginDir, file));
  await writeFile(join(configDir, `${file}.conf`), JSON.stringify(script));
};

const linesOf = async (path: string): Promise<readonly Told[]> => {
  const text = existsSync(path) ? await readFile(path, 'utf8') : '';
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Told);
};

/** What the log has, once it is as wanted. */
export const toldIn = async (
  owner: Owner,
  path: string,
  isThere: (told: readonly Told[]) => boolean,
): Promise<readonly Told[]> => {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Told[]>();
  // One look at a time: of a thousand lines each comes with an event, and each look reads them all.
  let looking: 'not' | 'now' | 'again' = 'not';
  const look = (): void => {
    if (looking !== 'not') return void (looking = 'again');
    looking = 'now';
    linesOf(path).then((told) => {
      if (isThere(told)) return resolve(told);
      const isStale = looking === 'again';
      looking = 'not';
      if (isStale) look();
    }, reject);
  };
  const watcher = watch(dirname(path), look);
  onCleanup(owner, () => watcher.close());
  const timer = setTimeout(() => {
    linesOf(path).then((told) => reject(new Error(`not as wanted: ${JSON.stringify(told)}`)), reject);
  }, WAIT_MS);
  look();
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    watcher.close();
  }
};
