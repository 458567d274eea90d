/**
 * The keys of NRI in the configuration file, what is said about them, and the names they have on our side. Like schema.ts,
 * of which it is a part; holds no rule of NRI itself.
 */
import * as z from 'zod';
import type { NriPluginSettings, NriSettings } from '../domain/model/nri-settings.ts';
import { absolutePath, choice, count, duration, flag, key, table, text, unset } from './key-forms.ts';

const pluginName = text.regex(
  /^[A-Za-z0-9_.+-]+$/,
  'must be the name of a plugin like "logger", or its index and name like "10-logger"',
);
const requestTimeout = duration('10ms');
const missesMax = count(0, 1000);

const plugin = z.strictObject(
  {
    request_timeout: unset(requestTimeout, '10s', 'Time that it has for an answer. Unless written, as for all.'),
    failure_policy: unset(
      choice('continue', 'fail'),
      'fail',
      'What a call comes to when it does not answer: continue goes on without it, fail fails the call. Unless written, as the plugin wishes, else continue.',
    ),
    misses_max: unset(
      missesMax,
      0,
      'Deadlines in a row that it may miss, as for all. Unless written, as the plugin wishes.',
    ),
    namespaces: unset(
      z.array(text, { error: 'must be a list of namespaces' }),
      ['kube-system'],
      'Namespaces whose pods it hears of. Unless written, all.',
    ),
    labels: key(
      z.record(z.string(), text, { error: 'must be a table of labels' }),
      {},
      'Labels that a pod has to have, all of them, for it to hear of it.',
    ),
  },
  { error: 'must be a table' },
);

export const nriTable = table('Plugins that see, adjust and refuse pods and containers (NRI).', {
  enable: key(flag, false, 'Launch plugins, and let them connect.'),
  socket: key(absolutePath, '/var/run/nri/nri.sock', 'Where plugins connect to. Whoever may is root on this node.'),
  plugin_dir: key(absolutePath, '/opt/nri/plugins', 'Executables that are launched, named NN-name.'),
  config_dir: key(absolutePath, '/etc/nri/conf.d', 'What launched plugins are told: NN-name.conf, else name.conf.'),
  disable_connections: key(flag, false, 'Only launched plugins: nothing can connect.'),
  registration_timeout: key(duration('100ms'), '5s', 'Time that a plugin has to register.'),
  request_timeout: key(requestTimeout, '2s', 'Time that a plugin has for an answer.'),
  misses_max: key(missesMax, 3, 'A plugin that misses so many deadlines in a row is disconnected; 0: never.'),
  plugins: z.record(pluginName, plugin, { error: 'must be a table of tables' }).prefault({}).meta({
    description: 'What holds for one plugin, in a table with its name ("logger"), or its index and name ("10-logger").',
  }),
});

const pluginOf = (own: z.output<typeof plugin>): NriPluginSettings => ({
  requestTimeoutMs: own.request_timeout ?? null,
  failurePolicy: own.failure_policy ?? null,
  missesMax: own.misses_max ?? null,
  namespaces: own.namespaces ?? null,
  labels: own.labels,
});

export const nriPluginsOf = ({ plugins }: z.output<typeof nriTable>): NriSettings['plugins'] =>
  Object.fromEntries(Object.entries(plugins).map(([name, own]) => [name, pluginOf(own)]));
