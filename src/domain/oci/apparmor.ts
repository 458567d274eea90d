/**
 * Which AppArmor profile a container runs under: none, the one that scribe brings along, or one of the node. Whether a
 * profile is loaded into the kernel is a fact that the inspect adapter finds out; what that leads to is said here.
 */
import type { ApparmorFact } from '../model/container-facts.ts';
import { ProfileType, type SecurityProfile } from '../model/cri.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { refuse, refuseField, shown } from './refuse.ts';
import { LOCALHOST_PREFIX, profileOfText } from './security-profile.ts';

/** Name of the profile that scribe brings along. */
export const APPARMOR_DEFAULT_PROFILE = 'scribe-default';

const FIELD = 'linux.security_context.apparmor';
const REF_FIELD = `${FIELD}.localhost_ref`;

interface ApparmorFields {
  readonly privileged?: boolean;
  readonly apparmor?: SecurityProfile;
  readonly apparmorProfile?: string;
}

interface Wanted {
  readonly name: string;
  /** Nobody asked for it: a container that says nothing gets it where it can be had. */
  readonly onlyIfLoaded: boolean;
}

const defaultProfile = (onlyIfLoaded: boolean): Wanted => ({ name: APPARMOR_DEFAULT_PROFILE, onlyIfLoaded });

/** The newer field wins; kubelet fills in both. */
function askedFor({ apparmor, apparmorProfile = '' }: ApparmorFields): SecurityProfile | null {
  if (apparmor !== undefined || apparmorProfile === '') return apparmor ?? null;
  return (
    profileOfText(apparmorProfile) ??
    refuseField(
      'linux.security_context.apparmor_profile',
      `is ${shown(apparmorProfile)}: it must be empty, unconfined, runtime/default or localhost/<name>`,
    )
  );
}

/** null: unconfined. A privileged container is, unless it names a profile. */
function wantedOf(context: ApparmorFields = {}): Wanted | null {
  const asked = askedFor(context);
  if (asked?.profileType === ProfileType.Localhost) {
    const reference = asked.localhostRef ?? '';
    const name = reference.startsWith(LOCALHOST_PREFIX) ? reference.slice(LOCALHOST_PREFIX.length) : reference;
    if (name === '') refuseField(REF_FIELD, 'is empty: name a profile loaded on the node');
    return { name, onlyIfLoaded: false };
  }
  if (context.privileged || asked?.profileType === ProfileType.Unconfined) return null;
  return defaultProfile(asked === null);
}

/** @throws {FailureError} InvalidField for what names no profile */
export function checkApparmor(context: ApparmorFields | undefined): void {
  wantedOf(context);
}

/** Name of the profile that has to be looked for on the node; null when there is nothing to look for. */
export const apparmorProfileToFind = (context: ApparmorFields | undefined, node: NodeFacts): string | null =>
  node.apparmor ? (wantedOf(context)?.name ?? null) : null;

/**
 * The profile that the container runs under; undefined for none.
 * @throws {FailureError} HostLacks when it was asked for and is not there
 */
export function apparmorProfileOf(
  context: ApparmorFields | undefined,
  node: NodeFacts,
  fact: ApparmorFact | undefined,
): string | undefined {
  const wanted = wantedOf(context);
  if (wanted === null) return undefined;
  const { name, onlyIfLoaded } = wanted;
  if (!node.apparmor) {
    // What kubelets call "the runtime's default" is nothing where there is no AppArmor.
    if (name === APPARMOR_DEFAULT_PROFILE) return undefined;
    refuse('HostLacks', `${FIELD} names the profile ${shown(name)}, but this node runs without AppArmor`);
  }
  if (fact?.loaded) return name;
  if (onlyIfLoaded) return undefined;
  // Journals of before profiles were looked for have no fact: what was decided then is decided again.
  if (fact === undefined) return name === APPARMOR_DEFAULT_PROFILE ? undefined : name;
  return refuse('HostLacks', `${FIELD} asks for the profile ${shown(name)}, which is not loaded: ${fact.problem}`);
}
