/** A full disk in the words of the catalogue. */
import { FailureError } from '../../domain/model/errors.ts';
import { errorCodeOf } from '../../platform/linux/syscalls.ts';

export const diskFull = (): FailureError =>
  new FailureError('DiskFull', 'The disk is too full for the image: make room and pull it again.');

export const asDiskFull = (error: unknown): unknown => {
  const code = errorCodeOf(error);
  return code === 'ENOSPC' || code === 'EDQUOT' ? diskFull() : error;
};
