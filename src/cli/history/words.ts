/** Records and calls in words, for a table. Pure; every type of record has its words, so a new one is a compile error. */
import type { LinuxContainerResources } from '../../domain/model/cri.ts';
import {
  type CallRequest,
  type DomainRecord,
  type Eviction,
  type Intent,
  type PodLimits,
  type Sequenced,
  subjectOf,
} from '../../domain/model/records.ts';
import type { AuditPolicy, ConfigReload } from '../../domain/model/audit-policy.ts';
import type { JournalRead } from '../../domain/model/reads.ts';
import type { UnknownField } from '../../domain/model/unknown-fields.ts';
import { pluginName } from '../../domain/nri/plugins.ts';
import type { FieldOwners } from '../../domain/model/nri.ts';
import type { WantedStreams } from '../../domain/model/streams.ts';
import { bytes, commandText, counted } from '../format.ts';
import type { Style } from '../table.ts';
import { answersOf, answersWords, ownedIn } from './plugins.ts';

export interface Words {
  readonly what: string;
  readonly outcome: string;
  readonly style: Style;
}

const DETAIL_CHARS_MAX = 100;

const shortened = (text: string): string =>
  text.length <= DETAIL_CHARS_MAX ? text : `${text.slice(0, DETAIL_CHARS_MAX - 1)}…`;

const streamsOf = (wanted: WantedStreams): string =>
  (['tty', 'stdin', 'stdout', 'stderr'] as const).filter((stream) => wanted[stream]).join(' ');

/** Limits in the words of cgroup files' readers; text that clients give is cut. */
const limitsWords = (resources: LinuxContainerResources): string =>
  shortened(
    Object.entries(resources)
      .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
      .join(', '),
  );

const podLimitsWords = ({ overhead, resources }: PodLimits): string =>
  [
    resources === undefined ? '' : limitsWords(resources),
    overhead === undefined ? '' : `overhead: ${limitsWords(overhead)}`,
  ]
    .filter((words) => words !== '')
    .join('; ');

const evictionWords = ({ plugin, reason }: Eviction): string => shortened(`evicted by ${plugin}: ${reason}`);

const timesWords = ({ times = 1, differing }: JournalRead): string => {
  if (times === 1) return '';
  return differing === true ? ` (the last of ${times} times, in different words)` : ` (${times} times)`;
};

/** A range in which nothing had been recorded ends before it begins; whoever follows has no end. */
const recordRange = (fromSeq: number, toSeq: number | undefined): string => {
  if (toSeq === undefined) return `all records from ${fromSeq} on`;
  return toSeq < fromSeq ? `no records: there was none from ${fromSeq} on` : `records ${fromSeq} to ${toSeq}`;
};

const journalReadWords = (read: JournalRead): string => {
  const { subcommand, words, fromSeq, toSeq, shown } = read;
  const extent = [
    ...(shown === undefined ? [] : [`${shown} shown`]),
    ...(fromSeq === undefined ? [] : [recordRange(fromSeq, toSeq)]),
  ].join(' of ');
  return `scribe ${shortened([subcommand, ...words].join(' '))}${timesWords(read)}${extent === '' ? '' : `: ${extent}`}`;
};

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** What of it is another one now, and the audit policy from now on. */
const reloadWords = ({ changes, signal }: ConfigReload): string => {
  const inWords = (value: unknown): string => (isEmpty(value) ? 'empty' : JSON.stringify(value));
  const words = changes.map(({ key, applied, was, is }) => {
    const before = was === undefined ? '' : `, was ${inWords(was)}`;
    const value = is === undefined ? '' : ` is ${inWords(is)}${before}`;
    return `${key}${value}${applied ? '' : ' (takes a restart)'}`;
  });
  return [...(signal === undefined ? [] : [`by ${signal}`]), ...words].join('; ');
};

/** What is worth knowing of a request beside its object; '' for nothing. */
export const detailOf = (request: CallRequest): string => {
  switch (request.method) {
    case 'RunPodSandbox':
      return request.runtimeHandler === '' ? '' : `handler ${request.runtimeHandler}`;
    case 'RestorePod':
      return shortened(request.checkpointPath);
    case 'CreateContainer':
      return request.config.image?.userSpecifiedImage || request.config.image?.image || '';
    case 'StopContainer':
      return request.evicted === undefined ? `grace ${request.timeoutSeconds} s` : evictionWords(request.evicted);
    case 'ExecSync':
      return shortened(commandText(request.cmd));
    case 'Exec':
    case 'ExecSession':
      return `${streamsOf(request)}: ${shortened(commandText(request.cmd))}`;
    case 'ReloadConfig':
      return shortened(reloadWords(request));
    case 'ClearStrays':
      return shortened(`${counted(request.count, 'stray')}: ${request.strays.join('; ')}`);
    case 'ReadJournal':
      return journalReadWords(request);
    case 'Read':
      return shortened(Object.keys(request.request).length === 0 ? '' : JSON.stringify(request.request));
    case 'Attach':
    case 'AttachSession':
      return streamsOf(request);
    case 'PortForward':
      return request.ports.length === 0 ? '' : `ports ${request.ports.join(', ')}`;
    case 'PortForwardSession':
      return `port ${request.port}`;
    case 'CheckpointContainer':
      return shortened(request.location);
    case 'CheckpointPod':
      return shortened(request.outputPath);
    case 'UpdateContainerResources':
      return `${limitsWords(request.resources)}${request.plugin === undefined ? '' : `, by ${request.plugin}`}`;
    case 'UpdatePodSandboxResources':
      return podLimitsWords(request);
    case 'UpdateRuntimeConfig':
      return `pod CIDR ${request.podCidr}`;
    case 'SetLogLevel':
      return request.level;
    case 'AcknowledgeJournal':
      return shortened(request.reason);
    default:
      return '';
  }
};

/** How much of a call was recorded, where the audit rules say something else than usual; '' elsewhere. */
export const auditWords = (request: CallRequest): string => {
  if (request.method === 'Read') return 'audit level request';
  return 'auditLevel' in request ? `audit level ${request.auditLevel ?? ''}` : '';
};

const policyWords = ({ rules, seal }: AuditPolicy): string => {
  const lists: readonly (readonly string[])[] = Object.values(seal);
  const seals = lists.flat().length;
  return `with ${counted(rules.length, 'audit rule')} and ${counted(seals, 'sealed pattern')}`;
};

/** What a request had more than the contract of its day: where, how much, and its values where they were kept. */
export const unknownWords = (unknown: readonly UnknownField[] = []): string =>
  unknown
    .map(({ field, bytes: size, text = '', base64 = '' }) => {
      const value = shortened(text === '' ? base64 : text);
      return `unknown field ${field}, ${bytes(size)}${value === '' ? '' : `: ${value}`}`;
    })
    .join(', ');

const intentWords = (intent: Intent): string => {
  switch (intent.kind) {
    case 'KillTask':
      return `KillTask with signal ${intent.signal}`;
    case 'WaitUntil':
      return `wait (${intent.purpose})`;
    case 'RunExec':
    case 'StreamExec':
      return `${intent.kind} ${shortened(commandText(intent.args))}`;
    case 'StreamPort':
      return `StreamPort ${intent.port}`;
    case 'CheckpointTask':
      return `CheckpointTask to ${shortened(intent.location)}`;
    case 'EndCheckpoint':
      return `EndCheckpoint to ${shortened(intent.location)}`;
    case 'CheckpointPod':
    case 'EndPodCheckpoint':
      return `${intent.kind} to ${shortened(intent.outputPath)}`;
    case 'ReadCheckpoint':
      return `ReadCheckpoint from ${shortened(intent.location)}`;
    case 'ReadPodCheckpoint':
      return `ReadPodCheckpoint from ${shortened(intent.checkpointPath)}`;
    case 'UpdateContainer':
      return `UpdateContainer ${limitsWords(intent.resources)}`;
    case 'CallPlugins':
      return `${intent.hook} of NRI plugins ${intent.plugins.join(', ')}`;
    case 'SynchronizePlugin':
      return `Synchronize of NRI plugin ${intent.plugin}`;
    case 'PullImage':
      return `PullImage ${intent.reference}${intent.runtimeHandler === undefined ? '' : ` for ${intent.runtimeHandler}`}`;
    default:
      return intent.kind;
  }
};

/** Who of the NRI plugins set what. */
const ownersWords = (owners: FieldOwners): string =>
  shortened(
    ownedIn(owners)
      .map(({ field, plugin, isTakenAway }) => `${field} ${isTakenAway ? 'taken away ' : ''}by ${plugin}`)
      .join(', '),
  );

const exitWords = (status: number, reason: string, message: string): string =>
  `exit ${status}, ${reason}${message === '' ? '' : `: ${message}`}`;

const plain = (what: string, outcome = ''): Words => ({ what, outcome, style: 'plain' });
const bad = (what: string, outcome: string): Words => ({ what, outcome, style: 'bad' });

type Of<T extends string> = Extract<Sequenced<DomainRecord>, { readonly type: `${T}.${string}` }>;

/** What a record about a pod, a container or an image says. */
const objectWords = (event: Of<'sandbox' | 'container' | 'image'>): Words => {
  switch (event.type) {
    case 'sandbox.requested':
      return plain('pod requested', event.body.name);
    case 'sandbox.restoring':
      return plain('pod restoring', 'its containers are being made');
    case 'sandbox.ready':
      return plain('pod ready', event.body.claimed ? '' : 'nobody waits for it');
    case 'sandbox.claimed':
      return plain('pod asked for again');
    case 'sandbox.failed':
      return bad('pod given up', event.body.failure.message);
    case 'sandbox.lost':
      return bad('pod lost', event.body.message);
    case 'sandbox.updated':
      return plain('pod limits changed', podLimitsWords(event.body));
    case 'sandbox.stopping':
      return plain('pod stopping');
    case 'sandbox.stopped':
      return plain('pod stopped');
    case 'sandbox.removing':
      return plain('pod being removed');
    case 'sandbox.removed':
      return plain('pod removed');
    case 'container.requested':
      return plain(
        'container requested',
        event.body.checkpointArchive === undefined ? event.body.name : `${event.body.name}, from a checkpoint`,
      );
    case 'container.adjusted':
      return plain('container adjusted', ownersWords(event.body.owners));
    case 'container.created':
      return plain('container created', event.body.claimed ? '' : 'nobody waits for it');
    case 'container.claimed':
      return plain('container asked for again');
    case 'container.failed':
      return bad('container given up', event.body.failure.message);
    case 'container.starting':
      return plain('container starting');
    case 'container.started':
      return plain('container started', `pid ${event.body.pid}`);
    case 'container.stopping':
      return plain(
        'container stopping',
        `signal ${event.body.signal}${event.body.evicted === undefined ? '' : `, ${evictionWords(event.body.evicted)}`}`,
      );
    case 'container.exited': {
      const { exitStatus, reason, message } = event.body;
      const outcome = exitWords(exitStatus, reason, message);
      return { what: 'container exited', outcome, style: exitStatus === 0 ? 'plain' : 'bad' };
    }
    case 'container.updated':
      return plain('limits changed', limitsWords(event.body.resources));
    case 'container.lost':
      return bad('container lost', event.body.message);
    case 'container.removing':
      return plain('container being removed');
    case 'container.removed':
      return plain('container removed');
    case 'image.pulled':
      return plain('image is there', event.body.image.repoTags.join(', '));
    case 'image.untagged':
      return plain('image lost tags', event.body.repoTags.join(', '));
    case 'image.removing':
      return plain('image being removed');
    case 'image.removed':
      return plain('image removed');
  }
};

/** What a record says; null for the two that are parts of a call. */
export const wordsOf = (event: Sequenced<DomainRecord>): Words | null => {
  switch (event.type) {
    case 'call.received':
    case 'call.completed':
      return null;
    case 'call.joined':
      return plain('call joined an earlier one', event.body.target);
    case 'call.detached':
      return plain('caller has gone', 'what it began goes on');
    case 'daemon.started': {
      const { facts, rebooted, deadTasks, crash, audit, leftAlone = [] } = event.body;
      const after = rebooted ? ', after a reboot' : '';
      const dead = deadTasks.length > 0 ? `, ${counted(deadTasks.length, 'task')} found dead` : '';
      const left = leftAlone.length > 0 ? `, ${counted(leftAlone.length, 'object')} not recovered` : '';
      const policy = audit === undefined ? '' : `, ${policyWords(audit)}`;
      const outcome = `scribe ${facts.version}${after}${dead}${left}${policy}`;
      if (leftAlone.length > 0) return bad('daemon started', outcome);
      if (crash === null) return plain('daemon started', outcome);
      return bad('daemon started', `${outcome}; the one before ended with: ${crash.split('\n')[0] ?? ''}`);
    }
    case 'daemon.stopped':
      return plain('daemon stopped', event.body.reason);
    case 'network.configured': {
      const { confList, problem, handler } = event.body;
      const whose = handler === undefined ? '' : `handler ${handler}: `;
      if (confList !== null) return plain('network configured', `${whose}${confList.name}, CNI ${confList.cniVersion}`);
      return { what: 'no network', outcome: `${whose}${problem ?? ''}`, style: 'doubtful' };
    }
    case 'effects.requested':
      return plain('begin', event.body.effects.map(intentWords).join(', '));
    case 'effect.ended': {
      const { kind, failure } = event.body;
      const answers = answersWords(answersOf(event.body));
      if (failure !== undefined) return bad('failed', `${kind}: ${failure.message}`);
      return plain('done', answers === '' ? kind : shortened(`${kind}: ${answers}`));
    }
    case 'task.exited':
      return plain(
        subjectOf(event.stream).kind === 'sandbox' ? 'sandbox exited' : 'task exited',
        `exit ${event.body.exit.exitStatus}`,
      );
    case 'task.oomed':
      return bad('out of memory', 'the kernel killed a process of it');
    case 'logkeeper.started': {
      const { pid, doubtful } = event.body;
      if (doubtful.length === 0) return plain('log keeper started', `pid ${pid}`);
      return bad('log keeper started', `pid ${pid}; logs of ${counted(doubtful.length, 'container')} may lack lines`);
    }
    case 'logkeeper.ended':
      return plain('log keeper ended', `pid ${event.body.pid}: ${event.body.reason}`);
    case 'content.damaged': {
      const { kind, digest, problem } = event.body;
      return bad(`${kind} ${problem}`, `${digest}: pull the image again`);
    }
    case 'turn.failed':
      return bad('bug of scribe', `${event.body.input.type} could not be decided: ${event.body.error}`);
    case 'journal.doubted':
      return bad('journal doubted', event.body.what);
    case 'journal.acknowledged':
      return plain('doubts acknowledged');
    case 'checkpoint.written':
      return plain('checkpoint written', event.body.digests.join(', '));
    case 'disk.filled':
      return bad('disk full', `${bytes(event.body.freeBytes)} free: only stopping and removing is taken`);
    case 'disk.freed':
      return plain('disk has room again', `${bytes(event.body.freeBytes)} free`);
    case 'content.collected': {
      const { blobs, layers } = event.body;
      return plain(
        'content collected',
        `${counted(blobs.length, 'blob')}, ${counted(layers.length, 'layer')} no image needs`,
      );
    }
    case 'shim.lost':
      return bad('shim lost', 'its process has gone');
    case 'nri.plugin.registered':
      return plain('NRI plugin registered', `${pluginName(event.body)}: ${event.body.hooks.join(', ')}`);
    case 'nri.plugin.closed':
      return plain('NRI plugin closed', `${event.body.id}: ${event.body.reason}`);
    case 'undo.retried':
      return plain('undo tried again');
    case 'node.configured':
      return plain('node configured', `pod CIDR ${event.body.podCidr}`);
    default:
      return objectWords(event);
  }
};
