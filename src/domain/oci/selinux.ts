/** A refusal of what a node's SELinux would have to do: labels are not given yet. */
import type { SELinuxOption } from '../cri.ts';
import type { NodeFacts } from '../node-facts.ts';
import { refuse } from './refuse.ts';

/** Labels mean nothing on a node without SELinux, so they are let through there. */
export function checkSelinux(options: SELinuxOption | undefined, node: NodeFacts): void {
  if (!node.selinux || options === undefined) return;
  if (Object.keys(options).length > 0) {
    refuse('NotImplemented', 'linux.security_context.selinux_options can not be applied yet: leave them empty');
  }
}
