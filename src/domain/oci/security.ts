/**
 * Mandatory access control: which AppArmor profile a container runs under, and a refusal of what a node's SELinux
 * would have to do. RuntimeDefault of AppArmor confines nothing yet: no profile of ours is loaded into the kernel.
 */
import { ProfileType, type SecurityProfile, type SELinuxOption } from '../cri.ts';
import type { NodeFacts } from '../node-facts.ts';
import { refuse, refuseField } from './refuse.ts';

const FIELD = 'linux.security_context.apparmor';
const LOCALHOST = 'localhost/';

interface AppArmorFields {
  readonly privileged?: boolean;
  readonly apparmor?: SecurityProfile;
  readonly apparmorProfile?: string;
}

/** Name of a profile loaded on the node; undefined for none. The newer field wins over the deprecated one. */
export function apparmorProfileOf(context: AppArmorFields | undefined, node: NodeFacts): string | undefined {
  if (context === undefined || context.privileged) return undefined;
  const deprecated = context.apparmorProfile ?? '';
  const reference =
    context.apparmor === undefined
      ? deprecated.startsWith(LOCALHOST)
        ? deprecated
        : null
      : context.apparmor.profileType === ProfileType.Localhost
        ? (context.apparmor.localhostRef ?? '')
        : null;
  if (reference === null) return undefined;
  if (!node.apparmor)
    refuse('HostLacks', `${FIELD} names the profile ${reference}, but this node runs without AppArmor`);
  const profile = reference.startsWith(LOCALHOST) ? reference.slice(LOCALHOST.length) : reference;
  return profile === ''
    ? refuseField(`${FIELD}.localhost_ref`, 'is empty: name a profile loaded on the node')
    : profile;
}

/** Labels mean nothing on a node without SELinux, so they are let through there. */
export function checkSelinux(options: SELinuxOption | undefined, node: NodeFacts): void {
  if (!node.selinux || options === undefined) return;
  if (Object.keys(options).length > 0) {
    refuse('NotImplemented', 'linux.security_context.selinux_options can not be applied yet: leave them empty');
  }
}
