/**
 * Which folder may import which: the layer table of docs/architecture.md as rules. Each rule says what a folder may
 * see, and forbids everything else, so a new folder or package has to be let in here first.
 * test/project/layers.test.ts plants a violation of every rule and shows that it is found.
 */

const npm = (...names) => `(^|/)node_modules/(${names.join('|')})(/|$)`;

/** Files under `path` may import only what matches one of `allowed`. */
const only = (name, comment, path, allowed, pathNot = undefined) => ({
  name,
  comment,
  severity: 'error',
  from: pathNot === undefined ? { path } : { path, pathNot },
  to: { pathNot: allowed },
});

/** `to` may be imported by nothing in src but what matches `by`. */
const belongsTo = (name, comment, to, by) => ({
  name,
  comment,
  severity: 'error',
  from: { path: '^src/', pathNot: by },
  to: { path: to },
});

/** A Node built-in as dependency-cruiser names it: "node:fs" or "fs/promises", never a path of ours. */
const builtIn = '^(node:)?[a-z_0-9]+(/promises|/web|/posix)?$';

/** The parts of the domain that decide and that fold state, by the names their files have. */
const decisions = [
  '^src/domain/(turn|deciding)/',
  '^src/domain/[^/]+/(decide|advance|outcomes|evolve)[^/]*\\.ts$',
  '^src/domain/call/catalogue\\.ts$',
  '^src/domain/model/state\\.ts$',
];

const wire = '^src/wire/';
const adapterContracts = '^src/adapters/[^/]+/([^/]+-port|types)\\.ts$';
const platform = '^src/platform/';

/**
 * The rooms of the domain, lowest first: a file sees its own room and those below. So there is no circle between rooms,
 * and a new room has to be given its floor here.
 */
const rooms = [
  'model',
  'values',
  'oci',
  'nri',
  'deciding',
  'image',
  'container',
  'pod-sandbox',
  'node',
  'call',
  'turn',
];

const upwards = rooms.map((room, floor) => ({
  name: `domain-${room}-sees-what-is-below`,
  comment: 'Each room of the domain sees those below it: docs/decisions/rooms-of-the-domain.md.',
  severity: 'error',
  from: { path: `^src/domain/${room}/` },
  to: { path: '^src/domain/', pathNot: `^src/domain/(${rooms.slice(0, floor + 1).join('|')})/` },
}));

export default {
  forbidden: [
    only('domain-imports-nothing', 'The domain is pure: no packages, no Node, nothing of ours.', '^src/domain/', [
      '^src/domain/',
    ]),
    ...upwards,
    {
      name: 'domain-has-rooms-only',
      comment: 'Nothing lies between the rooms: a file belongs to one.',
      severity: 'error',
      from: { path: '^src/', pathNot: wire },
      to: { path: '^src/domain/[^/]+\\.ts$' },
    },
    only(
      'journal-knows-records-only',
      'The journal is storage: it knows nothing of pods, so it imports nothing of ours but how threads with native parts are ended.',
      '^src/journal/',
      [
        '^src/journal/',
        '^src/platform/native-thread\\.ts$',
        builtIn,
        npm('better-sqlite3', '@types/better-sqlite3', 'koffi'),
      ],
    ),
    only(
      'engine-sees-domain-and-journal',
      'The engine runs unchanged in the simulator: what touches the world comes through its ports.',
      '^src/engine/',
      ['^src/engine/', '^src/domain/', '^src/journal/types\\.ts$', npm('rxjs')],
    ),
    only(
      'projections-see-domain',
      'Projections are pure folds over records that the domain describes.',
      '^src/projections/',
      ['^src/projections/', '^src/domain/'],
    ),
    only(
      'adapters-see-contracts',
      'Adapters perform effects: they see the domain, the engine ports, protocol code and contracts of other adapters.',
      '^src/adapters/([^/]+)/',
      [
        '^src/adapters/$1/',
        '^src/domain/',
        '^src/engine/ports\\.ts$',
        wire,
        platform,
        adapterContracts,
        builtIn,
        npm('[^/]+', '@[^/]+/[^/]+'),
      ],
    ),
    only(
      'platform-knows-no-pods',
      'The kernel, processes and framing, for whoever needs them: of the domain it sees words and plain values only.',
      platform,
      [
        platform,
        wire,
        '^src/domain/(model|values)/',
        '^src/engine/ports\\.ts$',
        builtIn,
        npm('koffi', '@types/koffi', '@bufbuild/protobuf', 'zod'),
      ],
    ),
    only(
      'rpc-knows-nobody',
      'Waiting for answers is the same whoever gives them: no words of any protocol, and small enough for every process.',
      '^src/platform/rpc/',
      ['^src/platform/rpc/', builtIn],
    ),
    {
      name: 'adapters-decide-nothing',
      comment: 'Deciding and evolving belong to the engine; an adapter uses only the vocabulary and the pure helpers.',
      severity: 'error',
      from: { path: '^src/(adapters|platform)/' },
      to: { path: decisions, dependencyTypesNot: ['type-only'] },
    },
    only('wire-is-generated', 'Generated code imports its own kind and the protobuf runtime.', wire, [
      wire,
      npm('@bufbuild/protobuf'),
    ]),
    only('config-stands-alone', 'Reading the configuration needs the domain and nothing that runs.', '^src/config/', [
      '^src/config/',
      '^src/domain/',
      builtIn,
      npm('zod', 'smol-toml'),
    ]),
    belongsTo(
      'config-is-for-the-root',
      'Other folders are handed the values they need: a part that reads the configuration cannot be replayed.',
      '^src/config/',
      '^src/(config|daemon|cli)/',
    ),
    belongsTo(
      'daemon-is-the-root',
      'What puts everything together is imported by the commands only.',
      '^src/daemon/',
      '^src/(daemon|cli)/',
    ),
    belongsTo('cli-is-the-outside', 'Nothing imports commands but commands.', '^src/cli/', '^src/cli/'),
    only('pages-run-in-browsers', 'What runs in a browser has nothing but its own files.', '^src/ui/', ['^src/ui/']),
    belongsTo('pages-are-served-by-commands', 'Only who serves a page shares its words.', '^src/ui/', '^src/(ui|cli)/'),
    belongsTo('sqlite-is-the-journals', 'One writer to one file.', npm('better-sqlite3'), '^src/journal/'),
    belongsTo(
      'grpc-is-for-both-ends-of-the-socket',
      'gRPC ends at the socket: at the CRI adapter, and at the commands that call it.',
      npm('@grpc'),
      '^src/(adapters/cri|cli)/',
    ),
    belongsTo(
      'system-calls-in-one-place',
      'Nothing but the FFI module and the journal lock makes system calls.',
      npm('koffi'),
      '^src/(platform/linux/|journal/lock)',
    ),
    belongsTo(
      'prometheus-in-one-place',
      'Metrics are named where they are made.',
      npm('prom-client'),
      '^src/adapters/metrics/',
    ),
    belongsTo(
      'opentelemetry-in-one-place',
      'Traces are told from the journal: no other part knows of spans.',
      npm('@opentelemetry'),
      '^src/adapters/traces/',
    ),
    belongsTo(
      'zod-is-for-what-others-wrote',
      'Foreign documents are read by schemas where they come in: docs/decisions/foreign-json.md.',
      npm('zod'),
      '^src/(config/|adapters/|platform/foreign-json\\.ts$)',
    ),
    {
      name: 'small-programs-load-no-zod',
      comment: 'It takes 3 MB of each thread and process: docs/decisions/foreign-json.md.',
      severity: 'error',
      from: {
        path: [
          '^src/platform/spawner/spawner-main\\.ts$',
          '^src/adapters/log-keeper/keeper-main\\.ts$',
          '^src/adapters/images/(unpack/child|trees/thread)\\.ts$',
          '^src/adapters/inspect/parse-thread\\.ts$',
          '^src/(daemon/sessions/thread|journal/writer-thread)\\.ts$',
        ],
      },
      to: { path: npm('zod'), reachable: true },
    },
    {
      name: 'source-stays-in-src',
      comment: 'What ships needs nothing of the tests, the scripts or the benchmarks.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|scripts|bench|bin)/' },
    },
    {
      name: 'no-circles',
      comment: 'Two files that need each other are one, or need a third.',
      severity: 'error',
      from: { path: '^src/', pathNot: wire },
      to: { circular: true },
    },
    {
      name: 'no-dev-packages',
      comment: 'What ships imports only what package.json lists under dependencies.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'], pathNot: '@types/' },
    },
    {
      name: 'resolvable',
      comment: 'An import of something that is not there.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
    moduleSystems: ['es6', 'cjs'],
  },
};
