/**
 * What an OCI runtime can do beyond what all can: asked of the runtime itself (its `features` command, OCI runtime
 * specification, features.md), through the spawner, once per start. A runtime that does not answer can nothing more.
 */
import * as z from 'zod';
import { escapesFromRunc, type KnownEscapes } from '../../domain/node/known-escapes.ts';
import { type RuntimeHandler, takesRuncOptions } from '../../domain/model/runtime-handler.ts';
import { readAs } from '../../platform/foreign-json.ts';
import type { Spawner } from '../../platform/spawner/types.ts';

export interface RuntimeFeatures {
  /** It knows user namespaces, and this kernel can map the ids of what is mounted for them (tmpfs too, Linux 6.3). */
  readonly userNamespaces: boolean;
  /** It knows the mount option "rro", and this kernel can do it (mount_setattr(2), Linux 5.12). */
  readonly recursiveReadOnlyMounts: boolean;
  /** It can move network interfaces of the host into a container (OCI runtime specification 1.3). */
  readonly netDevices: boolean;
  /** It can set the memory policy of a container's process (OCI runtime specification 1.3; runc 1.4). */
  readonly memoryPolicy: boolean;
}

const none: RuntimeFeatures = {
  recursiveReadOnlyMounts: false,
  netDevices: false,
  memoryPolicy: false,
  userNamespaces: false,
};
const timeoutMs = 5_000;
const outputBytesMax = 1024 * 1024;
/** More than the kernel will have for long. */
const WORDS_MAX = 10_000;
const VERSION_CHARACTERS_MAX = 256;
const mountSetattrSince = [5, 12] as const;
const mappedTmpfsSince = [6, 3] as const;

const isSince = (kernelRelease: string, [major, minor]: readonly [number, number]): boolean => {
  const [, ours = '0', next = '0'] = /^(\d+)\.(\d+)/.exec(kernelRelease) ?? [];
  return Number(ours) > major || (Number(ours) === major && Number(next) >= minor);
};

const wordsSchema = z.array(z.string()).max(WORDS_MAX).catch([]);

/** What is read of it. A field that is not as it should be says nothing, and the others what they say. */
const featuresSchema = z.object({
  mountOptions: wordsSchema,
  linux: z
    .object({
      namespaces: wordsSchema,
      netDevices: z.object({ enabled: z.boolean() }).optional().catch(undefined),
      memoryPolicy: z.object({ modes: wordsSchema }).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
  annotations: z
    // A newline is the end of it in runc 1.3.0 to 1.3.6, 1.4.0 to 1.4.3 and candidates of 1.5.0.
    .object({ 'org.opencontainers.runc.version': z.string().trim().max(VERSION_CHARACTERS_MAX) })
    .optional()
    .catch(undefined),
});

/** Reads what `features` printed; anything that is no such document means none. */
export const parseRuntimeFeatures = (text: string, kernelRelease: string): RuntimeFeatures => {
  const document = readAs(featuresSchema, text);
  if (document === null) return none;
  const { mountOptions, linux } = document;
  return {
    recursiveReadOnlyMounts: mountOptions.includes('rro') && isSince(kernelRelease, mountSetattrSince),
    netDevices: linux?.netDevices?.enabled === true,
    memoryPolicy: (linux?.memoryPolicy?.modes.length ?? 0) > 0,
    userNamespaces: linux?.namespaces.includes('user') === true && isSince(kernelRelease, mappedTmpfsSince),
  };
};

/** The version of runc that printed it; null: it was none. */
const runcVersionIn = (text: string): string | null =>
  readAs(featuresSchema, text)?.annotations?.['org.opencontainers.runc.version'] ?? null;

export interface RuntimeFeaturesOptions {
  readonly spawner: Pick<Spawner, 'run'>;
  /** PATH in which OCI runtimes are looked up. */
  readonly searchPath: string;
  readonly kernelRelease: string;
  /** Nothing else of this machine keeps pods from users of their own. */
  readonly mapsIds: boolean;
  /** Told once of each runtime that containers are known to escape from. */
  readonly onEscapes: (runtime: string, version: string, escapes: KnownEscapes) => void;
}

/** The handlers with what their OCI runtimes can do. Never rejects: a runtime that is missing fails when it is used. */
export const withFeatures = (
  { spawner, searchPath, kernelRelease, mapsIds, onEscapes }: RuntimeFeaturesOptions,
  handlers: readonly RuntimeHandler[],
): Promise<readonly RuntimeHandler[]> => {
  const env = { PATH: searchPath };
  const asked = new Map<string, Promise<RuntimeFeatures>>();
  const ask = async (command: string): Promise<RuntimeFeatures> => {
    const ran = await spawner
      .run({ command, args: ['features'], env, cwd: '/', timeoutMs, outputBytesMax })
      .catch(() => null);
    if (ran?.exitCode !== 0) return none;
    const told = Buffer.from(ran.stdout).toString('utf8');
    const version = runcVersionIn(told);
    const escapes = version === null ? null : escapesFromRunc(version);
    if (version !== null && escapes !== null) onEscapes(command, version, escapes);
    return parseRuntimeFeatures(told, kernelRelease);
  };
  return Promise.all(
    handlers.map(async (handler) => {
      // What other shims run behind them is not said by binary_name.
      if (!takesRuncOptions(handler)) return handler;
      const asking = asked.get(handler.binaryName) ?? ask(handler.binaryName);
      asked.set(handler.binaryName, asking);
      const features = await asking;
      return { ...handler, ...features, userNamespaces: features.userNamespaces && mapsIds };
    }),
  );
};
