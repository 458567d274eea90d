/**
 * Where a container's control group is, from the cgroupsPath of its OCI spec: a path below every controller's mount
 * (cgroupfs), or "slice:prefix:name" (systemd), which runtimes turn into nested slices with a scope in the last.
 * Pure text work.
 */
import { join, normalize } from 'node:path';

const SLICE_SUFFIX = '.slice';
const SCOPE_SUFFIX = '.scope';
const ROOT_SLICE = '-.slice';
const DEFAULT_SLICE = 'system.slice';

/** systemd.slice(5): the dashes in a slice's name are its place in the tree; a-b.slice lies in a.slice. */
const sliceDirectory = (slice: string): string => {
  if (slice === ROOT_SLICE) return '';
  const names = slice.slice(0, -SLICE_SUFFIX.length).split('-');
  return names.map((_, index) => `${names.slice(0, index + 1).join('-')}${SLICE_SUFFIX}`).join('/');
};

const systemdDirectory = (slice: string, prefix: string, name: string): string => {
  // A unit's name is one name: no part of it may become a path.
  if ([slice, prefix, name].some((part) => part.includes('/'))) return '';
  const parent = sliceDirectory(slice === '' ? DEFAULT_SLICE : slice);
  const unit = name.endsWith(SLICE_SUFFIX) ? name : `${prefix === '' ? '' : `${prefix}-`}${name}${SCOPE_SUFFIX}`;
  return join(parent, unit);
};

/**
 * The directory below a hierarchy's mount point, without a leading slash; null for a path that leads out of it or to
 * its root, or that is neither of the two forms.
 */
export const cgroupDirectory = (cgroupsPath: string): string | null => {
  const parts = cgroupsPath.split(':');
  const [slice = '', prefix = '', name = ''] = parts;
  const directory = parts.length === 3 ? systemdDirectory(slice, prefix, name) : normalize(cgroupsPath);
  const relative = directory.replace(/^\/+|\/+$/g, '');
  const leadsOut = relative.split('/').includes('..') || relative.includes('\0');
  return relative === '' || relative === '.' || leadsOut ? null : relative;
};
