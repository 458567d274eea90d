/** `scribe log-level`: changes what the running daemon logs, until it ends or a reload changes it. */
import { LOG_LEVELS, type LogLevel } from '../domain/values/log-levels.ts';
import { DaemonDefinition } from '../wire/scribe/v1/daemon.ts';
import { connectDaemon } from './client.ts';
import { command, misuse } from './command.ts';
import { write } from './io.ts';
import { configOption, socketOf, socketOption } from './places.ts';

const TIMEOUT_MS = 20_000;

const isLevel = (text: string): text is LogLevel => LOG_LEVELS.some((level) => level === text);

export const logLevel = command({
  name: 'log-level',
  summary: 'change what the running daemon logs',
  description: [
    'Sets the least severity that the running daemon logs: trace, debug, info, warn, error or fatal. Prints the level until now. It holds until the daemon ends, or a reload finds another serve.log_level in the configuration than before, which is for longer.',
    'The call is recorded: scribe history --method SetLogLevel shows who changed it.',
  ],
  options: { config: configOption, socket: socketOption },
  operands: { name: 'LEVEL', count: 1 },
  examples: [['scribe log-level debug', 'Has the daemon say more from now on.']],
  run: async (values, [level = ''], io) => {
    if (!isLevel(level)) throw misuse(`There is no level ${level}; there are ${LOG_LEVELS.join(', ')}.`);
    const daemon = await connectDaemon(await socketOf(values));
    try {
      const { setLogLevel } = DaemonDefinition.methods;
      const { previous } = await daemon.call(DaemonDefinition, setLogLevel, { level }, TIMEOUT_MS);
      await write(io.stdout, `${previous}\n`);
      return 0;
    } finally {
      daemon.close();
    }
  },
});
