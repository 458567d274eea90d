/** `scribe version`, and the version for whoever else tells it. */
import { readFileSync } from 'node:fs';
import { command } from './command.ts';
import { write } from './io.ts';

/** As package.json has it. */
export const versionOfScribe = (): string => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
};

export const version = command({
  name: 'version',
  summary: 'print the version',
  description: ['Prints the versions of scribe and of the Node that runs it.'],
  options: {},
  run: async (_values, _operands, io) => {
    await write(io.stdout, `scribe ${versionOfScribe()}, Node ${process.version}\n`);
    return 0;
  },
});
