/** `scribe reload`: has the running daemon read its configuration again, and says what of it changed. */
import { DaemonDefinition } from '../wire/scribe/v1/daemon.ts';
import { connectDaemon } from './client.ts';
import { command } from './command.ts';
import { write } from './io.ts';
import { configOption, socketOf, socketOption } from './places.ts';

const TIMEOUT_MS = 20_000;

export const reload = command({
  name: 'reload',
  summary: 'have the running daemon read its configuration again',
  description: [
    "What can change while the daemon runs changes at once: serve.log_level, images.registry_config_dirs and the audit policy ([[audit.rules]], [audit.seal]), which the next calls go by. Prints every key that differs, and whether it takes a restart. When a file can't be used nothing changes, and each problem is printed with its file, its field and the remedy.",
    'The call is recorded: scribe history --method ReloadConfig shows who changed what, and of the audit policy what it was and is. SIGHUP does the same, but nobody can say who sent it.',
  ],
  options: { config: configOption, socket: socketOption },
  examples: [['scribe reload', 'After /etc/scribe/config.toml, or a file in conf.d beside it, was changed.']],
  run: async (values, _operands, io) => {
    const daemon = await connectDaemon(await socketOf(values));
    try {
      const { changes } = await daemon.call(DaemonDefinition, DaemonDefinition.methods.reloadConfig, {}, TIMEOUT_MS);
      const lines = changes.map(({ key, applied }) => `${key}: ${applied ? 'applied' : 'takes a restart'}`);
      await write(io.stdout, `${lines.length === 0 ? 'nothing has changed' : lines.join('\n')}\n`);
      return 0;
    } finally {
      daemon.close();
    }
  },
});
