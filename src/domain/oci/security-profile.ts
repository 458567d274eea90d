/**
 * The text form that profiles of seccomp and AppArmor had before SecurityProfile: read here for both, judged by neither.
 */
import { ProfileType, type SecurityProfile } from '../model/cri.ts';

export const LOCALHOST_PREFIX = 'localhost/';

/** null for text that is none of the forms; what localhost/ is followed by is not looked at. */
export function profileOfText(text: string): SecurityProfile | null {
  if (text === 'unconfined') return { profileType: ProfileType.Unconfined };
  if (text === 'runtime/default' || text === 'docker/default') return { profileType: ProfileType.RuntimeDefault };
  return text.startsWith(LOCALHOST_PREFIX)
    ? { profileType: ProfileType.Localhost, localhostRef: text.slice(LOCALHOST_PREFIX.length) }
    : null;
}
