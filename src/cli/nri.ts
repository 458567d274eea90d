/** `scribe nri`: the NRI plugins that the daemon knows, how they do, and what they own in containers that run. */
import { pluginName } from '../domain/nri/plugins.ts';
import { DaemonDefinition, type ListNriPluginsReply, type NriPlugin } from '../wire/scribe/v1/daemon.ts';
import { connectDaemon } from './client.ts';
import { command } from './command.ts';
import { duration, jsonLine, type ShowTime, utcTime } from './format.ts';
import { type Io, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { configOption, jsonOption, socketOf, socketOption } from './places.ts';
import { type Column, createTable, type Style } from './table.ts';

const TIMEOUT_MS = 20_000;
const NOTHING = '-';

const PLUGINS: readonly Column[] = [
  { title: 'PLUGIN', widthMax: 40 },
  { title: 'STATE', widthMax: 13 },
  { title: 'STARTED', widthMax: 9 },
  { title: 'PID', widthMax: 7 },
  { title: 'NRI', widthMax: 12 },
  { title: 'SINCE', widthMax: 29 },
  { title: 'REQUESTS', widthMax: 10 },
  { title: 'FAILED', widthMax: 8 },
  { title: 'MISSED', widthMax: 8 },
  { title: 'LAST FAILURE', widthMax: 200 },
];
const LATENCIES: readonly Column[] = [
  { title: 'PLUGIN', widthMax: 40 },
  { title: 'HOOK', widthMax: 27 },
  { title: 'ANSWERS', widthMax: 10 },
  { title: 'P50', widthMax: 12 },
  { title: 'P99', widthMax: 12 },
  { title: 'MAX', widthMax: 12 },
];
const OWNED: readonly Column[] = [
  { title: 'PLUGIN', widthMax: 40 },
  { title: 'CONTAINER', widthMax: 100 },
  { title: 'OWNS', widthMax: 200 },
];

const STYLES: Readonly<Record<string, Style>> = { active: 'plain', gone: 'faint', waiting: 'bad' };

interface Row {
  readonly cells: readonly string[];
  readonly style?: Style;
}

const originOf = ({ state, launched }: NriPlugin): string => {
  if (state === 'gone') return NOTHING;
  return launched ? 'launched' : 'connected';
};

const pluginRow = (plugin: NriPlugin, showTime: ShowTime): Row => {
  const { state, pid, nriVersion, registeredNs, requests, failures, deadlinesMissed, lastFailure } = plugin;
  const [process, version] = [pid === 0 ? NOTHING : String(pid), nriVersion || NOTHING];
  const since = registeredNs === '0' ? NOTHING : showTime(BigInt(registeredNs));
  const figures = [requests, failures, deadlinesMissed, lastFailure || NOTHING];
  return {
    cells: [pluginName(plugin), state, originOf(plugin), process, version, since, ...figures],
    style: STYLES[state] ?? 'doubtful',
  };
};

const latencyRows = (plugin: NriPlugin): readonly Row[] =>
  plugin.latencies.map(({ hook, answers, p50Ns, p99Ns, maxNs }) => ({
    cells: [pluginName(plugin), hook, answers, ...[p50Ns, p99Ns, maxNs].map((ns) => duration(BigInt(ns)))],
  }));

const ownedRows = (plugin: NriPlugin): readonly Row[] =>
  plugin.owned.map(({ podNamespace, podName, containerName, fields }) => ({
    cells: [pluginName(plugin), `${podNamespace}/${podName}/${containerName}`, fields.join(', ')],
  }));

const jsonOf = ({ pid, nriVersion, registeredNs, lastFailure, ...plugin }: NriPlugin): string =>
  jsonLine({
    ...plugin,
    pid: pid || null,
    nriVersion: nriVersion || null,
    registeredAt: registeredNs === '0' ? null : utcTime(BigInt(registeredNs)),
    lastFailure: lastFailure || null,
  });

const showTable = async (columns: readonly Column[], rows: readonly Row[], io: Io): Promise<void> => {
  const table = createTable(io.stdout, columns);
  for (const { cells, style } of rows) await table.add(cells, style);
  await table.flush();
};

const show = async ({ enabled, plugins }: ListNriPluginsReply, showTime: ShowTime, io: Io): Promise<void> => {
  if (!enabled)
    await write(io.stderr, 'NRI is off: no plugin is asked anything. nri.enable in the configuration turns it on.\n');
  await showTable(
    PLUGINS,
    plugins.map((plugin) => pluginRow(plugin, showTime)),
    io,
  );
  for (const [columns, rows] of [
    [LATENCIES, plugins.flatMap(latencyRows)],
    [OWNED, plugins.flatMap(ownedRows)],
  ] as const) {
    if (rows.length === 0) continue;
    await write(io.stdout, '\n');
    await showTable(columns, rows, io);
  }
};

export const nri = command({
  name: 'nri',
  summary: 'list NRI plugins, how they do, and what they own',
  description: [
    'Lists the NRI plugins that the running daemon knows, in the order in which they are asked: how they came, how many requests they were sent, how many of these failed, and of how many they missed the deadline; then how long they took to answer, hook by hook, over the last 256 answers; then what they set in containers that run. All figures are of the time since the plugin registered: one that comes again begins anew.',
    'A plugin is active once it was told what there is (Synchronize), and is asked nothing before. One that waits was launched, has ended, and will be started again. One that is gone is listed as long as a container runs with what it set.',
    'scribe history --events shows what plugins changed and when they were asked; with --json, what each one answered.',
  ],
  options: {
    socket: socketOption,
    config: configOption,
    utc: { about: 'Times in UTC, instead of in the local zone.' },
    json: jsonOption,
  },
  examples: [
    ['scribe nri', 'Shows the plugins of this node.'],
    ['scribe nri --json | jq \'select(.state != "active")\'', 'Those that are not asked at present.'],
  ],
  run: async (values, _operands, io) => {
    const daemon = await connectDaemon(await socketOf(values));
    try {
      const { listNriPlugins } = DaemonDefinition.methods;
      const reply = await daemon.call(DaemonDefinition, listNriPlugins, {}, TIMEOUT_MS);
      if (values.json === true) await write(io.stdout, reply.plugins.map(jsonOf).join(''));
      else await show(reply, timesIn(values), io);
      return 0;
    } finally {
      daemon.close();
    }
  },
});
