/**
 * What the CDI devices that a container asks for would change in its OCI spec: the edits of their spec files, with device
 * nodes looked up on the host, and with tokens in place of the values of environment variables (C12). Applying them is
 * the domain's.
 */
import { stat } from 'node:fs/promises';
import type { CdiEdits, CdiDeviceNode, CdiEditsFact, CdiNodeFact, CdiSpec } from '../../domain/model/cdi.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { SecretEnv } from '../../domain/model/oci.ts';
import type { CdiSpecs } from './cdi-specs.ts';
import { majorOf, minorOf, typeOf } from './devices.ts';

export type InspectCdiDevices = (names: readonly string[]) => Promise<readonly CdiEditsFact[]>;

export interface CdiDevicesOptions {
  readonly specs: CdiSpecs;
  /** Keeps a value and gives the token that stands for it. */
  readonly tokenOf: (value: string) => string;
}

const PERMISSIONS = 0o7777n;

/** A node whose numbers the file gives needs not be there; of any other, the host says what it is. */
async function inspectNode(name: string, node: CdiDeviceNode): Promise<CdiNodeFact> {
  const hostPath = node.hostPath ?? node.path;
  const stats = await stat(hostPath, { bigint: true }).catch((error: unknown) => messageOf(error));
  const { type, major = 0, minor = 0 } = node;
  const isWhole = type !== undefined && (major !== 0 || type === 'p');
  if (typeof stats === 'string') {
    if (isWhole) return { ...node, type, major, minor };
    throw new FailureError('HostLacks', `CDI_devices ${name}: the device ${hostPath} cannot be used: ${stats}`);
  }
  const fileMode = node.fileMode ?? Number(stats.mode & PERMISSIONS);
  if (isWhole) return { ...node, type, major, minor, fileMode };
  const found = typeOf(stats);
  if (found === null || (type !== undefined && type !== found))
    throw new FailureError(
      'HostLacks',
      `CDI_devices ${name}: ${hostPath} is no device${type ? ` of type ${type}` : ''}`,
    );
  return { ...node, type: found, major: majorOf(stats.rdev), minor: minorOf(stats.rdev), fileMode };
}

export const createInspectCdiDevices = ({ specs, tokenOf }: CdiDevicesOptions): InspectCdiDevices => {
  const secret = (env: string): SecretEnv => {
    const at = env.indexOf('=');
    return { name: env.slice(0, at), token: tokenOf(env.slice(at + 1)) };
  };

  const inspectEdits = async (name: string, edits: CdiEdits): Promise<CdiEditsFact> => {
    const { env, deviceNodes, hooks, ...others } = edits;
    return {
      ...others,
      ...(env === undefined ? {} : { env: env.map(secret) }),
      ...(deviceNodes === undefined
        ? {}
        : { deviceNodes: await Promise.all(deviceNodes.map((node) => inspectNode(name, node))) }),
      ...(hooks === undefined
        ? {}
        : {
            hooks: hooks.map(({ env: hookEnv, ...hook }) => ({
              ...hook,
              ...(hookEnv === undefined ? {} : { env: hookEnv.map(secret) }),
            })),
          }),
    };
  };

  return async (names) => {
    const used = new Set<CdiSpec>();
    const edits: CdiEditsFact[] = [];
    for (const { name, spec, device } of await specs.find(names)) {
      if (!used.has(spec)) edits.push(await inspectEdits(name, spec.containerEdits));
      used.add(spec);
      edits.push(await inspectEdits(name, device.containerEdits));
    }
    return edits;
  };
};
