/**
 * A CNI bridge network for machines that have no CNI configuration: the conflist, and where the plugins are. Pods get
 * addresses of a private subnet, reach each other and the host, and the outside through the host's address.
 */
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export interface BridgeNetwork {
  readonly name: string;
  /** Name of the bridge's network device, at most 15 characters. */
  readonly bridge: string;
  /** For instance 10.213.0.0/16. */
  readonly subnet: string;
  /** Where the addresses in use are written down. */
  readonly dataDir: string;
  /** Whether pods reach the outside under the host's address (needs iptables' nat table). */
  readonly ipMasq: boolean;
}

export const bridgeConfList = ({ name, bridge, subnet, dataDir, ipMasq }: BridgeNetwork): string =>
  `${JSON.stringify(
    {
      cniVersion: '1.0.0',
      name,
      plugins: [
        {
          type: 'bridge',
          bridge,
          isGateway: true,
          ipMasq,
          ipam: { type: 'host-local', ranges: [[{ subnet }]], routes: [{ dst: '0.0.0.0/0' }], dataDir },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    },
    null,
    2,
  )}\n`;

/** The first of the usual directories that has the bridge plugin; throws with the remedy when none has. */
export const cniBinDir = async (): Promise<string> => {
  const usual = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'];
  for (const dir of usual) {
    const found = await access(join(dir, 'bridge')).then(
      () => true,
      () => false,
    );
    if (found) return dir;
  }
  throw new Error(`no CNI plugins in ${usual.join(', ')}: run 'sh scripts/setup.sh run'`);
};

/** Whether a directory holds a network configuration (a conflist or a conf); a missing directory holds none. */
export const hasCniConfig = async (dir: string): Promise<boolean> => {
  const names = await readdir(dir).catch(() => []);
  return names.some((name) => /\.(conflist|conf|json)$/.test(name));
};
