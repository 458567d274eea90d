/** `scribe doctor`: what is wrong with this machine, the journal and the daemon, and what to do about it. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { loadConfDir } from '../adapters/cni/conf.ts';
import { runDoctor } from '../adapters/doctor/doctor.ts';
import type { NetworkSettings } from '../adapters/doctor/network.ts';
import { type DoctorResult, ok, problem, warning } from '../adapters/doctor/result.ts';
import type { NriPluginsFound } from '../adapters/doctor/nri-plugins.ts';
import { UNWRITABLE_REMEDY } from '../adapters/doctor/storage.ts';
import { surveyRegistries } from '../adapters/images/registry/survey.ts';
import { discoverPlugins } from '../adapters/nri/launch/discover.ts';
import { readHostFacts } from '../platform/linux/host-facts.ts';
import type { StateReply } from '../wire/scribe/v1/daemon.ts';
import type { Config } from '../config/config.ts';
import { loadConfig, systemdRuns } from '../config/load.ts';
import { sandboxStream } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import { pluginName } from '../domain/nri/plugins.ts';
import { nodeFold } from '../engine/node-fold.ts';
import { foldState } from '../journal/fold.ts';
import { isNewer, isUnreadable, isUnwritable } from '../journal/errors.ts';
import { findingsOf, openReader } from '../journal/open.ts';
import { silentShims } from '../projections/silent-shims.ts';
import { workOwed } from '../projections/work-owed.ts';
import { command } from './command.ts';
import { type Answer, askDaemon, socketOfRoot } from './daemon.ts';
import { CRASHES, crashResults } from './crash-reports.ts';
import { counted, duration, grouped, jsonLine } from './format.ts';
import { createNames, labelOf, type Names, recordOf } from './history/names.ts';
import { type Io, write } from './io.ts';
import { journalOf, jsonOption, nodeOptions, overridesOf } from './places.ts';
import { straysOf, strayWords } from './journal/strays.ts';
import { witnessedOf } from './journal/witnesses.ts';
import { createTable, type Style } from './table.ts';

const JOURNAL = 'journal';
const DAEMON = 'daemon';
const OWED = 'work owed';
const SILENT_SHIMS = 'silent shims';
const STRAYS = 'strays';
const UNDER_WAY = 'under way';
const WITNESSES = 'witnesses';
/** One that has cosigned nothing for so long, while there was something, is not well. */
const WITNESS_LATE_MS = 3_600_000;
/** Checks whose words quote what went wrong elsewhere: plugins, runtimes, errors. */
export const QUOTING_CHECKS: readonly string[] = [DAEMON, OWED, CRASHES];
/** No step of a pod takes longer when all is well, but pulling an image. */
const SLOW_NS = 120_000_000_000n;
const TIMER = 'WaitUntil';
const NS_PER_MS = 1_000_000n;

/** What a journal tells, as far as it can be read. */
interface Journal {
  readonly results: readonly DoctorResult[];
  readonly headSeq: number;
  readonly state: NodeState | null;
  readonly lastRecordAtMs: number | null;
  readonly labelOf: (stream: string) => string;
  readonly close: () => void;
}

const noJournal = (result: DoctorResult): Journal => ({
  results: [result],
  headSeq: 0,
  state: null,
  lastRecordAtMs: null,
  labelOf: (stream) => stream,
  close: () => {},
});

/** Journals that could not be read and were set aside: somebody should look at them and take them away. */
const setAside = async (rootDir: string, path: string): Promise<DoctorResult[]> => {
  const files = await readdir(rootDir).catch(() => []);
  const pattern = new RegExp(`^${RegExp.escape(basename(path))}\\.corrupt-\\d+$`);
  return files
    .filter((file) => pattern.test(file))
    .map((file) =>
      warning(JOURNAL, `${file} could not be read and was set aside`, 'Look what it still tells, then remove it.'),
    );
};

const journalRemedy = 'Run scribe verify: it names every record that is not what was written.';

const BROKEN_DISK_REMEDY = 'Mend or replace the disk; pods run on meanwhile, and nobody can change them.';

const remedyFor = (error: unknown): string => {
  if (isNewer(error)) return 'Use the scribe that wrote it, or a later one.';
  if (isUnreadable(error)) return BROKEN_DISK_REMEDY;
  return isUnwritable(error) ? UNWRITABLE_REMEDY : journalRemedy;
};

const openJournal = async (rootDir: string): Promise<Journal> => {
  const path = journalOf(rootDir);
  const aside = await setAside(rootDir, path);
  if (!existsSync(path)) {
    const none = noJournal(ok(JOURNAL, `none at ${path}: the first start makes one`));
    return { ...none, results: [...none.results, ...aside] };
  }
  try {
    const findings = findingsOf(path).map((finding) => problem(JOURNAL, finding, journalRemedy));
    const { state, seq } = foldState(path, nodeFold);
    const reader = openReader(path);
    const last = recordOf(reader, seq);
    const names: Names = createNames(reader);
    const whole = ok(JOURNAL, `${path}: ${counted(seq, 'record')}, the newest are whole`);
    return {
      results: [...(findings.length === 0 ? [whole] : findings), ...aside],
      headSeq: seq,
      state,
      lastRecordAtMs: last === undefined ? null : Number(last.atNs / NS_PER_MS),
      labelOf: (stream) => labelOf(names, stream),
      close: () => reader.close(),
    };
  } catch (error) {
    const broken = noJournal(problem(JOURNAL, (error as Error).message, remedyFor(error)));
    return { ...broken, results: [...broken.results, ...aside] };
  }
};

const doubtResults = (state: NodeState | null): DoctorResult[] =>
  (state?.journalDoubts ?? []).map(({ what }) =>
    problem(JOURNAL, what, 'Find out why; then scribe journal acknowledge --reason TEXT says that you know.'),
  );

/** Without a journal that can be read nobody knows what is explained. */
const strayResults = async (stateDir: string, rootDir: string, state: NodeState | null): Promise<DoctorResult[]> => {
  if (state === null) return [];
  const remedy = 'No record explains it: scribe journal clear-strays --yes ends it, if nobody misses it.';
  return (await straysOf(stateDir, journalOf(rootDir))).map((stray) => warning(STRAYS, strayWords(stray), remedy));
};

const witnessResults = async (
  journalPath: string,
  { witnesses }: Config['journal'],
  headSeq: number,
): Promise<DoctorResult[]> =>
  (await witnessedOf(journalPath, witnesses)).map(({ name, cosigned }) => {
    const remedy =
      "See the daemon's log for what it answers: its URL and key, and whether it knows this journal's vkey.";
    if (cosigned === null)
      return warning(WITNESSES, `${name} has cosigned nothing by the key of the configuration`, remedy);
    const lateMs = Date.now() - cosigned.atSeconds * 1000;
    const told = `${name} has cosigned ${counted(cosigned.seq, 'record')} of ${grouped(headSeq)}`;
    const isLate = cosigned.seq < headSeq && lateMs > WITNESS_LATE_MS;
    return isLate
      ? warning(WITNESSES, `${told}, the last ${duration(BigInt(lateMs) * NS_PER_MS)} ago`, remedy)
      : ok(WITNESSES, told);
  });

const owedResults = ({ state, labelOf: label }: Journal): DoctorResult[] =>
  (state === null ? [] : workOwed(state)).map(({ stream, steps, failure, attempts }) => {
    const why = failure === null ? '' : `: ${failure.message}`;
    const detail = `${label(stream)} (${stream}): ${steps.join(', ')} could not be undone, tried ${counted(attempts, 'time')}${why}`;
    return problem(
      OWED,
      detail,
      'Remove what stands in the way; it is tried again by itself, and by the next stop or remove.',
    );
  });

const shimResults = ({ state, labelOf: label }: Journal): DoctorResult[] =>
  (state === null ? [] : silentShims(state)).map(({ podSandboxId, pid, silences }) => {
    const stream = sandboxStream(podSandboxId);
    return problem(
      SILENT_SHIMS,
      `${label(stream)} (${stream}): its shim, process ${pid}, gave no answer, ${counted(silences, 'time')} in a row; what its containers do is not known`,
      `See what process ${pid} waits for: one that was stopped goes on with kill -CONT ${pid}. It is asked again by itself; kill -KILL ${pid} ends one that never will answer, and its containers.`,
    );
  });

const underWayResult = (
  { effect, kind, stream, ageNs }: StateReply['underWay'][number],
  { labelOf: label }: Journal,
): DoctorResult => {
  const age = BigInt(ageNs);
  const object = label(stream);
  const detail = `${kind} (${effect})${object === '' ? '' : ` on ${object}`}, for ${duration(age)}`;
  return age < SLOW_NS
    ? ok(UNDER_WAY, detail)
    : warning(UNDER_WAY, detail, "See the daemon's log, and what the program that does it is waiting for.");
};

/** One that runs with other options has other directories than were looked at: all that is said of those is beside the point. */
const otherNetwork = ({ state }: Journal, { confDir, confList }: NetworkSettings): DoctorResult[] => {
  const name = state?.network.confList?.name;
  if (name === undefined || name === confList?.name) return [];
  const here = confList === null ? 'none' : `"${confList.name}"`;
  const remedy =
    'Give doctor the options that the daemon was started with, --cni-conf-dir among them: its command line has them.';
  return [warning(DAEMON, `has the network "${name}" for its pods, and ${confDir} has ${here}`, remedy)];
};

const daemonResults = (
  socketPath: string,
  { state, why }: Answer,
  journal: Journal,
  network: NetworkSettings,
): DoctorResult[] => {
  if (state === null) {
    const doubtful = [...(journal.state?.effects.values() ?? [])].filter(({ intent }) => intent.kind !== TIMER);
    const left = doubtful.length === 0 ? '' : `; ${counted(doubtful.length, 'effect')} had not ended when it did`;
    return [
      warning(
        DAEMON,
        `${why}${left}`,
        'Start it: it takes up what the journal says, and finishes or undoes what was under way.',
      ),
    ];
  }
  // Of a doubt the journal tells, with what ends it.
  const isDoubt = (finding: string): boolean =>
    journal.state?.journalDoubts?.some(({ what }) => what === finding) ?? false;
  const findings = state.findings
    .filter((finding) => !isDoubt(finding))
    .map((finding) => problem(DAEMON, finding, 'The daemon went on without it; see its log.'));
  const effects = state.underWay.filter(({ kind }) => kind !== TIMER).map((one) => underWayResult(one, journal));
  const answers = ok(DAEMON, `answers at ${socketPath}, at record ${state.seq}`);
  return [answers, ...otherNetwork(journal, network), ...findings, ...effects];
};

/** The network of pods whose handler has none of its own, and those of the runtime handlers that do. */
type Networks = readonly [NetworkSettings, ...NetworkSettings[]];

const networksOf = async ({ runtime, cni }: Config): Promise<Networks> => {
  const load = async (confDir: string, networkName?: string): Promise<NetworkSettings> => {
    const { network, problem: why } = await loadConfDir(confDir, cni.maxConfFiles, networkName);
    return { confDir, binDirs: cni.binDirs, confList: network?.confList ?? null, problem: why };
  };
  const ofHandlers = runtime.handlers.flatMap(({ name, cni: own }) =>
    own === undefined
      ? []
      : [load(own.confDir, own.networkName).then((settings): NetworkSettings => ({ ...settings, handler: name }))],
  );
  return [await load(cni.confDir), ...(await Promise.all(ofHandlers))];
};

const nriPluginsOf = async ({ nri }: Config): Promise<NriPluginsFound> => {
  const { enabled, pluginDir: dir } = nri;
  const problems: string[] = [];
  const found = enabled ? await discoverPlugins(nri, (sentence) => void problems.push(sentence)) : [];
  return { enabled, dir, names: found.map(pluginName), problems };
};

const machineResults = async (
  config: Config,
  [network, ...handlerNetworks]: Networks,
  socketPath: string,
  lastRecordAtMs: number | null,
): Promise<readonly DoctorResult[]> => {
  const { serve, journal, runtime, images } = config;
  const dirs = images.registryConfigDirs;
  const [node, registries, nriPlugins] = await Promise.all([
    readHostFacts(),
    surveyRegistries(dirs),
    nriPluginsOf(config),
  ]);
  return runDoctor({
    node,
    rootDir: serve.rootDir,
    stateDir: serve.stateDir,
    socketPath,
    diskReserveBytes: journal.diskReserveBytes,
    handlers: runtime.handlers,
    cgroupDriver: runtime.cgroupDriver,
    systemdRuns: await systemdRuns(),
    restrictOomScoreAdj: runtime.restrictOomScoreAdj,
    enableSelinux: runtime.enableSelinux,
    network,
    handlerNetworks,
    registries: { dirs, ...registries },
    nriPlugins,
    lastRecordAtMs,
    nowMs: Date.now(),
    path: process.env['PATH'] ?? '',
  });
};

const STYLES: Readonly<Record<DoctorResult['status'], Style>> = { ok: 'plain', warning: 'doubtful', problem: 'bad' };

const show = async (results: readonly DoctorResult[], io: Io): Promise<void> => {
  const table = createTable(io.stdout, [
    { title: 'STATUS', widthMax: 8 },
    { title: 'CHECK', widthMax: 40 },
    { title: 'FOUND', widthMax: 200 },
  ]);
  for (const { check, status, detail, remedy } of results) {
    await table.add([status, check, detail], STYLES[status]);
    if (remedy !== null) await table.add(['', '', `-> ${remedy}`]);
  }
  await table.flush();
  const count = (status: DoctorResult['status']): number => results.filter((result) => result.status === status).length;
  await write(io.stdout, `\n${counted(count('problem'), 'problem')}, ${counted(count('warning'), 'warning')}\n`);
};

export const doctor = command({
  name: 'doctor',
  summary: 'check this machine, and what the daemon still owes',
  description: [
    'Checks what pods need: kernel, capabilities, cgroups, overlayfs (by mounting one and taking it away again), space, shims and OCI runtimes, the CNI configurations and their plugins, iptables, hosts.toml files and certificates of registries, NRI plugins, kubelets that run here, the clock. And what the journal and, when it runs, the daemon know: work that is still owed because it could not be undone yet, shims that do not answer, what runs or is mounted that no record explains, reports of crashes, what was found bad and passed over, and what is under way since when.',
    'A warning is something that will be worse than it could be; a problem keeps pods, or some of them, from running. Each comes with what to do about it. Changes nothing, and works with the daemon up or down.',
    'Give it the options that the daemon runs with.',
  ],
  options: { ...nodeOptions, json: jsonOption },
  exitStatus: '0 when nothing keeps pods from running, 1 when something does',
  run: async (values, _operands, io) => {
    const config = await loadConfig({ path: values.config, overrides: overridesOf(values) });
    const { rootDir } = config.serve;
    const journal = await openJournal(rootDir);
    try {
      // Where the journal could not be read, nobody knows better than the configuration.
      const isTold = values.state !== undefined || journal.state === null;
      const socketPath = isTold ? config.serve.socketPath : await socketOfRoot(values, journalOf(rootDir));
      const networks = await networksOf(config);
      const [answer, machine] = await Promise.all([
        askDaemon(socketPath, rootDir),
        machineResults(config, networks, socketPath, journal.lastRecordAtMs),
      ]);
      const results = [
        ...machine,
        ...journal.results,
        ...(await crashResults(rootDir)),
        ...doubtResults(journal.state),
        ...(await witnessResults(journalOf(rootDir), config.journal, journal.headSeq)),
        ...(await strayResults(config.serve.stateDir, rootDir, journal.state)),
        ...daemonResults(socketPath, answer, journal, networks[0]),
        ...shimResults(journal),
        ...owedResults(journal),
      ];
      if (values.json === true) await write(io.stdout, results.map(jsonLine).join(''));
      else await show(results, io);
      return results.some(({ status }) => status === 'problem') ? 1 : 0;
    } finally {
      journal.close();
    }
  },
});
