/**
 * Capabilities of a container's process: CRI's add and drop lists against the default set and against what the daemon
 * itself has, since nobody can hand on more. Inheritable and ambient hold what is asked for as ambient and nothing else:
 * a user other than root keeps those over an execve, and inheritable ones survive an execve that should have lost them.
 */
import type { Capability } from '../model/cri.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { refuse, refuseField, shown } from './refuse.ts';
import type { OciCapabilities } from '../model/oci.ts';
import { words } from '../values/words.ts';

/** capabilities(7), in the order of their numbers. */
const known = words(`
  CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID CAP_SETPCAP
  CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW CAP_IPC_LOCK CAP_IPC_OWNER
  CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_PACCT CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE
  CAP_SYS_RESOURCE CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_MKNOD CAP_LEASE CAP_AUDIT_WRITE CAP_AUDIT_CONTROL CAP_SETFCAP
  CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF
  CAP_CHECKPOINT_RESTORE
`);

/** What containers get unless they say otherwise: the set that container images have come to rely on. */
const defaults = words(`
  CAP_CHOWN CAP_DAC_OVERRIDE CAP_FSETID CAP_FOWNER CAP_MKNOD CAP_NET_RAW CAP_SETGID CAP_SETUID CAP_SETFCAP CAP_SETPCAP
  CAP_NET_BIND_SERVICE CAP_SYS_CHROOT CAP_KILL CAP_AUDIT_WRITE
`);

const ALL = 'ALL';
const FIELD = 'linux.security_context.capabilities';

/** "net_raw" and "CAP_NET_RAW" are both meant by people. */
function fullName(name: string): string {
  const upper = name.toUpperCase();
  return upper === ALL || upper.startsWith('CAP_') ? upper : `CAP_${upper}`;
}

/** Refuses names that are no capability: a typo in a drop list would leave the container more than its author thinks. */
export function checkCapabilities(capability: Capability | undefined): void {
  const check = (list: string, names: readonly string[] | undefined): void => {
    for (const name of names ?? []) {
      const full = fullName(name);
      if (full !== ALL && !known.includes(full)) {
        refuseField(`${FIELD}.${list}`, `names ${shown(name)}, which is no capability: see capabilities(7)`);
      }
    }
  };
  check('add_capabilities', capability?.addCapabilities);
  check('drop_capabilities', capability?.dropCapabilities);
  check('add_ambient_capabilities', capability?.addAmbientCapabilities);
}

/** Whether all of these are capabilities, spelled in full. */
export const checkCapabilityNames = (names: readonly string[]): boolean => names.every((name) => known.includes(name));

const sets = (list: readonly string[], ambient: readonly string[] = []): OciCapabilities => ({
  bounding: list,
  effective: list,
  permitted: list,
  inheritable: ambient,
  ambient,
});

export const noCapabilities = sets([]);

/** A privileged container gets the daemon's own effective set, whatever it adds or drops; others begin with `unasked`. */
export function containerCapabilities(
  capability: Capability | undefined,
  privileged: boolean,
  node: NodeFacts,
  unasked: readonly string[] = defaults,
): OciCapabilities {
  const own = known.filter((name) => node.capabilities.includes(name));
  if (privileged) return sets(own);
  const add = (capability?.addCapabilities ?? []).map(fullName);
  const addAmbient = (capability?.addAmbientCapabilities ?? []).map(fullName);
  const drop = (capability?.dropCapabilities ?? []).map(fullName);
  const wantsAll = add.includes(ALL) || addAmbient.includes(ALL);
  const given = new Set(drop.includes(ALL) ? [] : wantsAll ? own : unasked.filter((name) => own.includes(name)));
  for (const [list, names] of [
    ['add_capabilities', add],
    ['add_ambient_capabilities', addAmbient],
  ] as const) {
    for (const name of names) {
      if (name === ALL || drop.includes(name)) continue;
      if (!own.includes(name)) {
        refuse(
          'HostLacks',
          `${FIELD}.${list} asks for ${name}, which the daemon does not have itself and can not give`,
        );
      }
      given.add(name);
    }
  }
  for (const name of drop) given.delete(name);
  const list = known.filter((name) => given.has(name));
  return sets(list, addAmbient.includes(ALL) ? list : list.filter((name) => addAmbient.includes(name)));
}
