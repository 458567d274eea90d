/**
 * Writes the golden journal of what seldom happens on a node and is in no simulated history: records about the node itself,
 * and calls that nothing follows from. Run by hand: node test/golden/record-node.ts RULES > test/golden/v1/NAME.jsonl, then
 * node scripts/make-golden.ts --accept NAME. node-rules4 is of rules 4, of which there is no other; node-rules7 has ClearStrays, too.
 */
import { stdout } from 'node:process';
import { writeGolden } from '../../src/cli/replay/golden-text.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { Observation } from '../../src/domain/model/observation.ts';
import { isOwnType } from '../../src/journal/own-records.ts';
import { idOf, runContainer, settled, startRig } from '../engine/rig.ts';
import { FACTS } from '../simulation/facts.ts';
import { IMAGE } from '../simulation/images.ts';

const image = 'registry.test/app:1';
const digest = `sha256:${'4f'.repeat(32)}`;
const failure = { reason: 'InvalidField', message: 'level is "loud", which is none' } as const;

const CALLS: readonly CallDraft[] = [
  { method: 'UpdateRuntimeConfig', podCidr: '10.1.0.0/16' },
  { method: 'SetLogLevel', level: 'debug' },
  { method: 'ReloadConfig', changes: [{ key: 'audit.rules', applied: true, was: [], is: [] }], signal: 'SIGHUP' },
  { method: 'ReloadConfig', changes: [], failure },
  { method: 'ReadJournal', subcommand: 'history', words: ['--failed'], fromSeq: 1, toSeq: 9, shown: 2 },
  { method: 'ClearStrays', strays: ['mount /run/scribe/netns/ab'], count: 1 },
  { method: 'Read', rpc: 'ListContainers', request: { filter: {} }, durationNs: '5' },
  { method: 'Refused', rpc: 'ExecSync', failure },
  { method: 'Unimplemented', rpc: 'RuntimeConfig' },
  { method: 'AcknowledgeJournal', reason: 'restored from a backup' },
];

const pulled = [IMAGE, { ...IMAGE, id: digest }];
const rig = await startRig({
  facts: { ...FACTS, rules: Number(process.argv[2] ?? 4) },
  perform: {
    PullImage: async () => ({ image: pulled.shift() ?? IMAGE }),
    CheckpointTask: async () => ({ digests: [digest] }),
  },
});
const { podSandboxId, containerId } = await runContainer(rig);
const imageId = rig.engine.state.containers.get(containerId)?.imageId ?? '';
const observed: readonly Observation[] = [
  { kind: 'JournalDoubted', doubt: { what: 'The journal was put back.', head: { file: 'journal.db.head', digest } } },
  { kind: 'NodeNoted', note: { type: 'disk.filled', body: { freeBytes: 4096 } } },
  { kind: 'NodeNoted', note: { type: 'disk.freed', body: { freeBytes: 1_048_576 } } },
  { kind: 'NodeNoted', note: { type: 'content.collected', body: { blobs: [digest], layers: [] } } },
  { kind: 'ContentDamaged', imageId, damaged: { kind: 'blob', digest, problem: 'altered' } },
  { kind: 'LogKeeperStarted', pid: 77, startTicks: '9', doubtful: [] },
  { kind: 'LogKeeperEnded', pid: 77, startTicks: '9', reason: 'it was killed by SIGKILL' },
];
for (const observation of observed) await rig.engine.observe(observation);
for (const call of CALLS) await rig.call(call);
const config = { metadata: { name: 'sealed' }, image: { image }, args: ['--password', { token: 'secret:x' }] };
idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
await rig.call({ method: 'CheckpointContainer', containerId, location: '/archives/c.tar', timeoutSeconds: '0' });
// The name goes to another image.
await rig.call({ method: 'PullImage', image, credentials: null });
await rig.call({ method: 'RemoveImage', image });
await settled(rig);
await rig.engine.stop('SIGTERM');
const records = rig.contents.rows.flatMap(({ record }) => record ?? []);
// What the journal says of itself is not decided.
stdout.write(writeGolden(records.filter(({ type }) => !isOwnType(type))));
