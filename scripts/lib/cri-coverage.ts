/**
 * Reads docs/cri-coverage.md: which test shows what scribe does with a part of the contract, and what test files have.
 * Must not know the contract.
 */

/** One line of the document. */
export interface CoverageRow {
  /** "RPCs", or the message that it is a field of. */
  readonly heading: string;
  readonly name: string;
  /** Of the test that shows it. */
  readonly file: string;
  /** As the test file has it, with what it fills in. */
  readonly title: string;
}

/** All rows of all tables, in order. */
export const coverageRows = (document: string): readonly CoverageRow[] =>
  document.split(/^#+ /m).flatMap((section) => {
    const heading = section.slice(0, section.indexOf('\n'));
    return [...section.matchAll(/^\| (\w+) \| .+? \| (.+?) \|$/gm)]
      .filter(([, , shownBy]) => shownBy !== 'shown by')
      .map(([, name = '', shownBy = '']) => {
        const [file = '', title = ''] = shownBy.split(/: (.*)/s);
        return { heading, name, file, title };
      });
  });

/** Titles of the tests in a file that are neither skipped nor left for later; not those of their groups. */
export const testTitles = (text: string): readonly string[] =>
  [...text.matchAll(/(?<![\w.])(?:test|it)\(\s*(['`"])(.*?)\1,(.*?)(?:=>|function)/gs)]
    .filter(([, , , options = '']) => !/\b(skip|todo)\b/.test(options))
    .map(([, , title = '']) => title);

/** Whether a test that ran is the one of this title: what is filled in can be anything. */
export const isOfTitle = (title: string, ran: string): boolean => {
  const parts = title.split(/\$\{.*?\}/s).map((part) => RegExp.escape(part));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(ran);
};
