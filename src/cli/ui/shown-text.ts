/** How texts of others are given to the page. Pure. */
import { printable } from '../format.ts';

/** Longer than any name that Kubernetes takes; of a megabyte, which the CRI takes, a browser makes a line for seconds. */
const CHARS_MAX = 1000;

/** One line without characters that steer or turn text around, cut where nobody would read on: the record's body has all of it. */
export const shownText = (text: string): string =>
  printable(text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX).toWellFormed()}…`);
