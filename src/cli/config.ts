/** `scribe config default` and `scribe config check`. */
import { command } from './command.ts';
import { write } from './io.ts';
import { configOption } from './places.ts';

export const configDefault = command({
  name: 'config default',
  summary: 'print the configuration with every default',
  description: [
    'Prints a configuration file (TOML) with every key, what it means, and its default: something to begin a file of your own with. Keys that are left out keep their defaults.',
  ],
  options: {},
  examples: [['scribe config default > /etc/scribe/config.toml', 'Begins a configuration file.']],
  run: async (_values, _operands, io) => {
    const { defaultConfigToml } = await import('../config/document.ts');
    await write(io.stdout, defaultConfigToml());
    return 0;
  },
});

export const configCheck = command({
  name: 'config check',
  summary: 'read the configuration and say what is wrong with it',
  description: [
    'Reads the configuration file and the files of conf.d beside it as the daemon does, and lists every problem: unreadable files, TOML errors, misspelt keys, values out of bounds, contradictions, and what is wrong with the OCI specs that runtime handlers name.',
    'Says which files were read, in the order in which they were merged. Looks at nothing else of the machine: scribe doctor does that.',
  ],
  options: { config: configOption },
  run: async ({ config: path }, _operands, io) => {
    const { loadConfig } = await import('../config/load.ts');
    const { files } = await loadConfig({ path });
    const read =
      files.length === 0
        ? 'There is no configuration file: the defaults hold.'
        : `${files.join('\n')}\nNo problem found.`;
    await write(io.stdout, `${read}\n`);
    return 0;
  },
});
