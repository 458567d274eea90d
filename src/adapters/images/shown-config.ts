/**
 * An image's config as it came from its registry, for people and tools that ask for all that is known of the image. Nothing here
 * acts on it: what containers are made from was read when the image was pulled (documents.ts).
 */
import { open } from 'node:fs/promises';
import * as z from 'zod';
import { readAs } from '../../platform/foreign-json.ts';
import { blobPath, type ImageLayout } from './layout.ts';

/** Larger ones would hold up whoever reads them. */
const SHOWN_BYTES_MAX = 256 * 1024;

const anyObject = z.looseObject({});

/** null: it is not there, too large to be shown, or no object. Never rejects. */
export async function readShownConfig(
  layout: ImageLayout,
  imageId: string,
): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    await using file = await open(blobPath(layout, imageId));
    const { size } = await file.stat();
    return size > SHOWN_BYTES_MAX ? null : readAs(anyObject, await file.readFile('utf8'));
  } catch {
    return null;
  }
}
