/** On what was measured: the machine, the versions of all that took part, and what else the machine was doing. */
import { execFile } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../src/platform/linux/find-program.ts';
import type { OciRuntimeName, Runtime } from './runtimes.ts';

const execute = promisify(execFile);
const top = join(import.meta.dirname, '../..');

/** Names and values in the order in which they are shown. */
export type Environment = Readonly<Record<string, string>>;

const said = async (command: string, args: readonly string[], pattern: RegExp): Promise<string> => {
  try {
    const { stdout, stderr } = await execute(command, args, { cwd: top });
    return pattern.exec(stdout + stderr)?.[1] ?? '';
  } catch {
    return 'unknown';
  }
};

/** Programs that containerd inflates gzip by where they are on PATH, in the order in which it looks for them. */
const INFLATERS = ['igzip', 'unpigz'] as const;

const inflaterOf = async (path: string): Promise<string> => {
  for (const name of INFLATERS) if ((await findProgram(name, path)) !== null) return name;
  return 'itself';
};

/** The load of the last minute and of the last five. */
export const loadNow = (): string => {
  const [one = 0, five = 0] = loadavg();
  return `${one.toFixed(1)} (1 min), ${five.toFixed(1)} (5 min)`;
};

const peerOf = async (runtimes: readonly Runtime[]): Promise<string> => {
  const peer = runtimes.find(({ name }) => name !== 'scribe');
  const { PATH = '' } = process.env;
  if (peer === undefined) return 'none';
  return peer.name === 'containerd' ? `${peer.version}, gzip inflated by ${await inflaterOf(PATH)}` : peer.version;
};

/** Reads it all once; `bin` is the directory of what was built for the benchmark. */
export const readEnvironment = async (
  runtimes: readonly Runtime[],
  bin: string,
  ociRuntime: OciRuntimeName,
): Promise<Environment> => {
  const processors = cpus();
  const [commit, changes, runtime, shim, cni] = await Promise.all([
    said('git', ['rev-parse', '--short', 'HEAD'], /^(\S+)/),
    said('git', ['status', '--porcelain', '--untracked-files=no', 'src', 'bin'], /^\s*(\S+)/),
    said(ociRuntime, ['--version'], /^\w+ version (\S+)/),
    said(join(bin, 'containerd-shim-runc-v2'), ['-v'], /Version: +(\S+)/),
    said(join(bin, 'cni/bridge'), [], /plugin (\S+)/),
  ]);
  return {
    date: new Date().toISOString().slice(0, 10),
    scribe: `commit ${commit}${changes === '' ? '' : ' and changes'}, Node ${process.version}`,
    peer: await peerOf(runtimes),
    both: `${ociRuntime} ${runtime}, shim ${shim}, CNI plugins ${cni}`,
    machine: `${processors.length} × ${processors[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}`,
  };
};
