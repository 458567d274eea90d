/** Sentences that become a part of others. Pure. */

/** Without its full stop: what follows it ends the sentence. */
export const bare = (sentence: string): string => sentence.replace(/\.$/, '');
