/** A call as it comes in, before it is written down. Types only. */
import type { CallMethod, RequestOf } from '../model/records.ts';

/** New ids may be left out: the engine chooses them. */
export type DraftOf<R> = R extends { readonly newContainerIds: readonly string[] }
  ? Omit<R, 'newId' | 'newContainerIds'> & { newId?: string; newContainerIds?: readonly string[] }
  : R extends { readonly newId: string }
    ? Omit<R, 'newId'> & { newId?: string }
    : R;

export type CallDraft = { [M in CallMethod]: DraftOf<RequestOf<M>> }[CallMethod];
