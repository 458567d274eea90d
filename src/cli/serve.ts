/** `scribe serve`: reads the configuration and hands over to the daemon. Start-up time counts: nothing else here. */
import { command } from './command.ts';
import { nodeOptions, overridesOf } from './places.ts';
import { versionOfScribe } from './version.ts';

export const serve = command({
  name: 'serve',
  summary: 'run the daemon',
  description: [
    'Runs the daemon in the foreground until SIGTERM or SIGINT. Pods stay when it ends, and it takes them up again when it starts: what it is, is what its journal says.',
    'It logs JSON to standard error (lines for people on a terminal), and "serving" with the time since it was started once it answers calls. Its process id is in <state>/scribe.pid. Everything it writes is below root and state. One daemon has a root, a state directory and a socket for itself: a second one for any of them is refused at once, with the process id of the first.',
    'SIGHUP, like scribe reload, has it read the configuration again: serve.log_level, images.registry_config_dirs and the audit policy change at once, of anything else the log says that it takes a restart, and a configuration that is wrong changes nothing. Network configurations and hosts.toml files need no signal.',
    'Options win over the configuration file. scribe config default prints all that can be configured.',
  ],
  options: {
    ...nodeOptions,
    'log-level': {
      value: 'LEVEL',
      about: 'Least severity that is logged: trace, debug, info, warn, error or fatal.',
    },
  },
  examples: [
    ['scribe serve', 'Serves as /etc/scribe/config.toml says.'],
    [
      'scribe serve --root /tmp/node/root --state /tmp/node/state --cni-conf-dir /tmp/node/cni',
      'A second node beside the first, with directories of its own.',
    ],
  ],
  run: async (values) => {
    const [{ loadConfig }, daemon] = await Promise.all([import('../config/load.ts'), import('../daemon/serve.ts')]);
    const level = values['log-level'];
    const overrides = { ...overridesOf(values), ...(level === undefined ? {} : { logLevel: level }) };
    const load = () => loadConfig({ path: values.config, overrides });
    await daemon.serve(await load(), { version: versionOfScribe(), reloadConfig: load });
    return 0;
  },
});
