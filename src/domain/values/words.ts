/** Long lists of names as they are easiest to read and to compare: words in a text. */

/** The words of a text, split at white space. */
export const words = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== '');
