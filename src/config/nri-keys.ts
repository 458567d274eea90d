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

/** As containerd's plugin io.containerd.nri.v1.nri has them. */
const defaultValidator = table('A validator that scribe brings along: it judges what plugins want of a container.', {
  enable: key(flag, false, 'Have it judge. All keys of this table are without effect until then.'),
  reject_oci_hook_adjustment: key(flag, false, 'Let no plugin add OCI hooks.'),
  reject_runtime_default_seccomp_adjustment: key(
    flag,
    false,
    'Let no plugin set a seccomp policy where the container asked for the default one.',
  ),
  reject_unconfined_seccomp_adjustment: key(
    flag,
    false,
    'Let no plugin set a seccomp policy where the container asked for none.',
  ),
  reject_custom_seccomp_adjustment: key(
    flag,
    false,
    'Let no plugin set a seccomp policy where the container asked for one of its own (Localhost).',
  ),
  reject_namespace_adjustment: key(flag, false, 'Let no plugin change namespaces.'),
  reject_sysctl_adjustment: key(flag, false, 'Let no plugin change kernel parameters.'),
  required_plugins: key(
    z.array(pluginName, { error: 'must be a list of names of plugins' }),
    [],
    'Plugins, by name ("logger") or index and name ("10-logger"), without which no container is made: they have to be connected, and to answer. Pods name more by the annotation required-plugins.noderesource.dev. Have pods that run such plugins, and static pods, tolerate that they are missing.',
  ),
  tolerate_missing_plugins_annotation: key(
    text.regex(
      /^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?(\/[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?)?$/,
      'must be the key of an annotation like "tolerate-missing-plugins.noderesource.dev", or empty',
    ),
    '',
    'The annotation by which a pod ("true") does without required plugins; empty: none can. With /container.NAME behind it, it is for one container, with /pod for all.',
  ),
});

export const nriTable = table('Plugins that see, adjust and refuse pods and containers (NRI).', {
  enable: key(flag, true, 'Launch plugins, and let them connect.'),
  socket: key(absolutePath, '/var/run/nri/nri.sock', 'Where plugins connect to. Whoever may is root on this node.'),
  plugin_dir: key(absolutePath, '/opt/nri/plugins', 'Executables that are launched, named NN-name.'),
  config_dir: key(absolutePath, '/etc/nri/conf.d', 'What launched plugins are told: NN-name.conf, else name.conf.'),
  disable_connections: key(flag, false, 'Only launched plugins: nothing can connect.'),
  registration_timeout: key(duration('100ms'), '5s', 'Time that a plugin has to register.'),
  request_timeout: key(requestTimeout, '2s', 'Time that a plugin has for an answer.'),
  misses_max: key(
    missesMax,
    3,
    'A plugin that misses so many deadlines in a row is disconnected; 0: never, and after 3 nobody waits behind another.',
  ),
  startup_wait: key(
    duration('0s'),
    '15s',
    'So long after a start of the daemon, what is created waits for required plugins that are not there yet (default_validator).',
  ),
  default_validator: defaultValidator,
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

export const defaultValidatorOf = ({
  default_validator: { enable, ...keys },
}: z.output<typeof nriTable>): NriSettings['defaultValidator'] => ({
  enable,
  rules: {
    rejectOciHookAdjustment: keys.reject_oci_hook_adjustment,
    rejectRuntimeDefaultSeccompAdjustment: keys.reject_runtime_default_seccomp_adjustment,
    rejectUnconfinedSeccompAdjustment: keys.reject_unconfined_seccomp_adjustment,
    rejectCustomSeccompAdjustment: keys.reject_custom_seccomp_adjustment,
    rejectNamespaceAdjustment: keys.reject_namespace_adjustment,
    rejectSysctlAdjustment: keys.reject_sysctl_adjustment,
    requiredPlugins: keys.required_plugins,
    tolerateMissingPluginsAnnotation: keys.tolerate_missing_plugins_annotation,
  },
});
