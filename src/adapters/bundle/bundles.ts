/**
 * Writes OCI bundles: config.json, readable by root alone because it holds a container's secrets in the clear, and the
 * directory its root file system is mounted at. Secret tokens become values in it (C12). (The FIFO
 * `log` of a bundle belongs to whoever reads it: the shim adapter makes it.)
 */
import { join } from 'node:path';
import type { Bundle } from '../../domain/model/tasks.ts';
import type { OciEnv, OciHook, OciSpec } from '../../domain/model/oci.ts';
import { writtenRlimits } from '../../domain/oci/rlimits.ts';
import type { Files } from '../../platform/linux/files.ts';
import { filledArg, filledEnv } from './filled.ts';
import type { SecretVault } from './secrets.ts';

export type WriteBundle = (bundle: Bundle) => Promise<void>;

const CONFIG_MODE = 0o600;

/** config.json's text, the secrets of its process and its hooks filled in. */
const configOf = (spec: OciSpec, vault: Pick<SecretVault, 'fill'>): string => {
  const { process, hooks } = spec;
  const filledIn = (envs: readonly OciEnv[]): readonly string[] => envs.map((env) => filledEnv(env, vault));
  const hook = ({ env, ...rest }: OciHook): object => (env === undefined ? rest : { ...rest, env: filledIn(env) });
  const named = Object.entries(hooks ?? {}).map(([name, some]: [string, readonly OciHook[]]) => [name, some.map(hook)]);
  return JSON.stringify({
    ...spec,
    process: {
      ...process,
      args: process.args.map((arg) => filledArg(arg, vault)),
      env: filledIn(process.env),
      ...(process.rlimits === undefined ? {} : { rlimits: writtenRlimits(process.rlimits) }),
    },
    ...(hooks === undefined ? {} : { hooks: Object.fromEntries(named) as unknown }),
  });
};

/** The node's id of the group of the pod's own root; undefined for a pod whose users are the node's. */
const rootGidOf = ({ linux }: OciSpec): number | undefined =>
  linux.gidMappings?.find(({ containerID }) => containerID === 0)?.hostID;

/**
 * Writes <path>/config.json and <path>/rootfs, over what is there. Rejects with FailureError Interrupted when a secret
 * is not known any more, and InvalidField when one can't be part of an OCI config.
 */
export const createBundleWriter =
  (vault: Pick<SecretVault, 'fill'>, { makeDirectory, makeDirectoryOfPod, writeFileWhole }: Files): WriteBundle =>
  async ({ path, spec }) => {
    const config = configOf(spec, vault);
    await makeDirectoryOfPod(path, rootGidOf(spec));
    await makeDirectory(join(path, 'rootfs'));
    await writeFileWhole(join(path, 'config.json'), config, CONFIG_MODE);
  };
