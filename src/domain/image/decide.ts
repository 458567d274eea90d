/** What calls about images lead to. */
import type { RequestOf } from '../model/records.ts';
import { imageStream } from '../model/records.ts';
import { complete, emit, OK, type Turn, wake } from '../deciding/turn.ts';
import type { OpenCall } from '../model/state.ts';
import { refused, succeeded } from '../model/result.ts';
import { findImage } from './names.ts';
import { parseImageReference } from './reference.ts';
import { fetchFor, startFetch } from './advance.ts';

export function pullImage(turn: Turn, call: OpenCall, request: RequestOf<'PullImage'>): void {
  const parsed = parseImageReference(request.image);
  if (!parsed.ok)
    return complete(turn, call, refused({ reason: 'InvalidField', message: `image.image ${parsed.failure}` }));
  fetchImages(turn, call);
}

/** A pull of what is being pulled with the same credentials waits for that one. */
export function fetchImages(turn: Turn, call: OpenCall): void {
  if (fetchFor(turn.state, call.target, call.seq) !== undefined) return;
  startFetch(turn, call);
}

/** Removes the image with all its names, whichever of them was given; unknown is OK (CRI). */
export function removeImage(turn: Turn, call: OpenCall, request: RequestOf<'RemoveImage'>): void {
  const image = findImage(turn.state, request.image);
  if (image === undefined) return complete(turn, call, OK);
  emit(turn, imageStream(image.id), { type: 'image.removing', body: {} });
  complete(turn, call, succeeded({ imageRefs: [image.id] }));
  wake(turn, imageStream(image.id));
}
