/** `scribe journal clear-strays`: ends what runs, and takes away what is mounted, that no record explains. */
import { resolve } from 'node:path';
import { clearStrays } from '../../adapters/doctor/strays.ts';
import { loadConfig } from '../../config/load.ts';
import { command } from '../command.ts';
import { write } from '../io.ts';
import { configOption, readableJournal } from '../places.ts';
import { straysOf, strayWords } from './strays.ts';

export const journalClearStrays = command({
  name: 'journal clear-strays',
  summary: 'end shims and take away mounts that no record explains',
  description: [
    'Looks under the state directory for shims, mounts and pinned namespaces of pods and containers that the journal does not know, as when the journal was put back from an older copy, and prints them: that is what scribe doctor lists. With --yes it kills the shims and all they run, and takes the mounts away. Nothing else ever does: without this command they stay.',
    'Their addresses and control groups are left: CNI GC and a reboot take those.',
  ],
  options: {
    config: configOption,
    root: { value: 'DIR', about: 'The root directory. Wins over the configuration.' },
    state: { value: 'DIR', about: 'The state directory. Wins over the configuration.' },
    yes: { about: 'Does it; without, it only says what there is.' },
  },
  examples: [['scribe journal clear-strays --yes', 'Ends what runs unknown to the journal.']],
  run: async ({ config, root, state, yes }, _operands, io) => {
    const overrides = { ...(root === undefined ? {} : { root }), ...(state === undefined ? {} : { state }) };
    const { rootDir, stateDir } = (await loadConfig({ path: config, overrides })).serve;
    const strays = await straysOf(resolve(stateDir), await readableJournal(resolve(rootDir)));
    if (yes === true) await clearStrays(resolve(stateDir), strays);
    const did = yes === true ? 'cleared' : 'found';
    await write(io.stdout, strays.map((stray) => `${did}: ${strayWords(stray)}\n`).join(''));
    if (strays.length === 0) await write(io.stderr, 'scribe: There is nothing that no record explains.\n');
    return 0;
  },
});
