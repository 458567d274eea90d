/** `scribe journal clear-strays`: ends what runs, and takes away what is mounted, that no record explains. */
import { realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { clearStrays } from '../../adapters/doctor/strays.ts';
import { SOCKET_NAME } from '../../config/names.ts';
import { loadConfig } from '../../config/load.ts';
import { DaemonDefinition } from '../../wire/scribe/v1/daemon.ts';
import { connectDaemon } from '../client.ts';
import { whyUnreachable } from '../reachable.ts';
import { command } from '../command.ts';
import { write } from '../io.ts';
import { configOption, readableJournal } from '../places.ts';
import { straysOf, strayWords } from './strays.ts';

const TIMEOUT_MS = 30_000;

/**
 * Has the daemon record it before anything is done; null when it has, else why there is nobody to. Throws what the daemon
 * says where it refuses: then nothing must be cleared.
 */
const recordClearing = async (
  socketPath: string,
  rootDir: string,
  strays: readonly string[],
): Promise<string | null> => {
  const unreachable = await whyUnreachable(socketPath);
  if (unreachable !== null) return `there is no daemon at ${socketPath}: ${unreachable}`;
  const daemon = await connectDaemon(socketPath);
  try {
    const request = { rootDir, strays: [...strays] };
    await daemon.call(DaemonDefinition, DaemonDefinition.methods.clearStrays, request, TIMEOUT_MS);
    return null;
  } finally {
    daemon.close();
  }
};

export const journalClearStrays = command({
  name: 'journal clear-strays',
  summary: 'end shims and take away mounts that no record explains',
  description: [
    'Looks under the state directory for shims, mounts and pinned namespaces of pods and containers that the journal does not know, as when the journal was put back from an older copy, and prints them: that is what scribe doctor lists. With --yes it kills the shims and all they run, and takes the mounts away. Nothing else ever does: without this command they stay.',
    'Where the daemon runs, what is cleared is recorded first, with who called (scribe history --method ClearStrays), and where that is refused nothing is cleared.',
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
    const { rootDir, stateDir, socketPath: configured } = (await loadConfig({ path: config, overrides })).serve;
    const strays = await straysOf(resolve(stateDir), await readableJournal(resolve(rootDir)));
    if (yes === true && strays.length > 0) {
      const socketPath = state === undefined ? configured : join(resolve(state), SOCKET_NAME);
      const unrecorded = await recordClearing(socketPath, await realpath(resolve(rootDir)), strays.map(strayWords));
      if (unrecorded !== null) await write(io.stderr, `scribe: This is not recorded: ${unrecorded}.\n`);
      await clearStrays(resolve(stateDir), strays);
    }
    const did = yes === true ? 'cleared' : 'found';
    await write(io.stdout, strays.map((stray) => `${did}: ${strayWords(stray)}\n`).join(''));
    if (strays.length === 0) await write(io.stderr, 'scribe: There is nothing that no record explains.\n');
    return 0;
  },
});
