/** The failure of an image whose documents or blobs are not what the OCI image specification says: one sentence, whoever finds it. */
import { FailureError } from '../../domain/model/errors.ts';

/** @param what  what is wrong, without the full stop */
export const invalidImage = (what: string): FailureError =>
  new FailureError('ImageInvalid', `The image is not valid: ${what}.`);
