/**
 * Extended attributes of archive members: which of them an archive may set, and how it is said that one cannot be. Pure; the setting
 * itself is extract.ts'.
 */
import { FailureError } from '../../../domain/model/errors.ts';
import { OPAQUE_XATTR, OVERLAY_XATTR_PREFIX } from '../../../platform/linux/overlay-marks.ts';
import { shownPath } from './paths.ts';

/** As overlayfs itself has it, in a container's writable layer. */
export const isOpaqueMark = (name: string, value: Uint8Array): boolean =>
  name === OPAQUE_XATTR && value[0] === 'y'.charCodeAt(0);

export const refusedXattr = (path: string, name: string, { length }: Uint8Array, why: string): FailureError => {
  const what = JSON.stringify(name.slice(0, 100)).slice(1, -1);
  return new FailureError(
    'ImageInvalid',
    `${shownPath(path)} has an extended attribute (${what}, ${length} bytes) that ${why}.`,
  );
};

/** What the kernel says of attributes that no file, or none of that kind, can have: the last of a default ACL of what is no directory. */
export const XATTR_FAULTS: readonly unknown[] = ['EINVAL', 'ERANGE', 'E2BIG', 'EACCES'];

/** With these, overlayfs would look for what a directory or file holds at another place: it is not in the archive. */
export const ELSEWHERE_XATTRS: readonly string[] = [
  `${OVERLAY_XATTR_PREFIX}redirect`,
  `${OVERLAY_XATTR_PREFIX}metacopy`,
];

/** Attributes an archive may set. trusted.* and security.selinux steer the host; overlayfs reads some of user.* too. */
export const mayCarry = (name: string): boolean =>
  (name.startsWith('user.') && !name.startsWith('user.overlay.')) ||
  name === 'security.capability' ||
  name === 'system.posix_acl_access' ||
  name === 'system.posix_acl_default';
