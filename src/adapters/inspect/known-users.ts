/**
 * Who a container's process is, remembered for images that were asked about before: layers never change once they are
 * unpacked, so that the same question about the same ones has the same answer. Bounded; knows nothing of what is asked.
 */
import type { ContainerFacts, ContainerQuestions } from '../../domain/model/container-facts.ts';
import { isThere } from '../../platform/linux/exists.ts';
import type { LayerDirs } from './image-directories.ts';
import type { ReadImageFile } from './image-files.ts';
import { resolveUser } from './users.ts';

type User = ContainerFacts['user'];

/** Pairs of image and user; an answer has some 100 bytes, unless the user is in many groups. */
const USERS_MAX = 256;
const GROUPS_MAX = 64;

interface Dependencies {
  readonly readImageFile: ReadImageFile;
  readonly layerDirs: LayerDirs;
}

export type ResolveUserOf = (chainIds: readonly string[], questions: ContainerQuestions['user']) => Promise<User>;

/** Rejects as resolveUser does: a failure is not remembered. */
export const createKnownUsers = ({ readImageFile, layerDirs }: Dependencies): ResolveUserOf => {
  const known = new Map<string, User>();

  const remember = (question: string, user: User): void => {
    if (user.additionalGids.length > GROUPS_MAX) return;
    const [oldest] = known.keys();
    if (known.size >= USERS_MAX && oldest !== undefined) known.delete(oldest);
    known.set(question, user);
  };

  const areUnpacked = async (chainIds: readonly string[]): Promise<boolean> =>
    (await Promise.all(layerDirs(chainIds).map(isThere))).every(Boolean);

  return async (chainIds, questions) => {
    // The chain id of the uppermost layer stands for all below it.
    const question = JSON.stringify([chainIds.at(-1), questions]);
    const before = known.get(question);
    if (before !== undefined) return before;
    // What is not there has no files either, and may be there the next time.
    const wereUnpacked = await areUnpacked(chainIds);
    const user = await resolveUser(questions, (path, maxBytes) => readImageFile(chainIds, path, maxBytes));
    if (wereUnpacked && (await areUnpacked(chainIds))) remember(question, user);
    return user;
  };
};
