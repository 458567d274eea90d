/** The command line of programs that have no option but --help. */
import { parseArgs } from 'node:util';

export interface CommandLine {
  /** What --help prints. */
  readonly usage: string;
  /** Its words mean something, each as they stand. */
  readonly takesWords: boolean;
}

/** The words. --help ends the program, and so does what it does not take: with a sentence and status 2. */
export const wordsOrEnd = ({ usage, takesWords }: CommandLine, args = process.argv.slice(2)): readonly string[] => {
  const options = { help: { type: 'boolean', default: false } } as const;
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: takesWords });
    if (!values.help) return positionals;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    process.exit(2);
  }
  console.log(usage);
  process.exit(0);
};
