/** A full disk in the words of the catalogue. */
import { FailureError, isFullDisk } from '../../domain/model/errors.ts';

export const diskFull = (): FailureError =>
  new FailureError('DiskFull', 'The disk is too full for the image: make room and pull it again.');

export const asDiskFull = (error: unknown): unknown => (isFullDisk(error) ? diskFull() : error);
