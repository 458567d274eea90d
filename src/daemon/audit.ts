/**
 * The node's audit policy, where calls come in: which reads become records, and which words of commands are sealed before
 * anybody writes them down. Decides nothing of the calls themselves, and remembers nothing but the policy in force.
 */
import { type AuditLevelOf, auditPolicy } from '../domain/call/audit.ts';
import { wholeId } from '../domain/call/ids.ts';
import { type Seals, sealsOf } from '../domain/call/sealing.ts';
import type { AuditPolicy } from '../domain/model/audit-policy.ts';
import { containerStream, sandboxStream } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { AuditedCommand } from '../domain/model/streams.ts';
import type { ReadDetails, RecordRead, SubmitCall } from '../engine/ports.ts';
import type { ReadRow } from '../journal/types.ts';

type Shown = Pick<Readonly<NodeState>, 'sandboxes' | 'containers'>;

interface AuditOptions {
  readonly policy: AuditPolicy;
  readonly state: Shown;
  readonly submit: SubmitCall;
  readonly appendRead: (row: ReadRow) => void;
  readonly tokenOf: (value: string) => string;
}

export interface Audit {
  /** By the policy that is in force when they are asked. */
  readonly seals: Seals;
  /** What comes in from now on goes by this one. */
  readonly setPolicy: (policy: AuditPolicy) => void;
  readonly recordRead: RecordRead;
  readonly audited: (method: 'ExecSync' | 'Exec', containerId: string, cmd: readonly string[]) => AuditedCommand;
}

/** Of a longer request only its size is recorded: nobody asks so much who only reads. */
const REQUEST_CHARS_MAX = 64 * 1024;

interface InForce {
  readonly levelOf: AuditLevelOf;
  readonly seals: Seals;
}

export function createAudit({ policy, state, submit, appendRead, tokenOf }: AuditOptions): Audit {
  const made = ({ rules, seal }: AuditPolicy): InForce => ({
    levelOf: auditPolicy(rules),
    seals: sealsOf(seal, tokenOf),
  });
  let inForce = made(policy);
  const seals: Seals = {
    labels: (entries) => inForce.seals.labels(entries),
    annotations: (entries) => inForce.seals.annotations(entries),
    words: (cmd) => inForce.seals.words(cmd),
    allArguments: (cmd) => inForce.seals.allArguments(cmd),
    command: (config) => inForce.seals.command(config),
  };

  const submitRead = async (row: ReadRow, { caller, request, unknownFields, failure }: ReadDetails): Promise<void> => {
    const about = streamOf(state, row.subject);
    const { unrecorded } = await submit(
      {
        method: 'Read',
        rpc: row.method,
        ...(about === null ? {} : { about }),
        request: bounded(withSealedSelector(seals, request)),
        durationNs: String(row.durationNs),
        ...(failure === null ? {} : { failure }),
      },
      { caller, deadlineNs: null, unknownFields },
    );
    // While the disk is full there is room for rows alone.
    if (unrecorded === true) appendRead(row);
  };

  return {
    seals,
    setPolicy(next) {
      inForce = made(next);
    },
    recordRead(row, details) {
      switch (inForce.levelOf(row.method, () => namespaceOf(state, row.subject))) {
        case 'none':
          return;
        case 'metadata':
          return appendRead(row);
        case 'request':
        case 'request-response':
          void submitRead(row, details());
      }
    },
    audited(method, containerId, cmd) {
      const isMetadata = inForce.levelOf(method, () => namespaceOf(state, containerId)) === 'metadata';
      return isMetadata ? { cmd: seals.allArguments(cmd), auditLevel: 'metadata' } : { cmd: seals.words(cmd) };
    },
  };
}

/** Whoever looks for a sealed label names its value. */
const withSealedSelector = ({ labels }: Seals, request: ReadDetails['request']): ReadDetails['request'] => {
  const { filter } = request as { readonly filter?: { readonly labelSelector?: Readonly<Record<string, string>> } };
  if (filter?.labelSelector === undefined) return request;
  return { ...request, filter: { ...filter, labelSelector: labels(filter.labelSelector) } };
};

const bounded = (request: ReadDetails['request']): ReadDetails['request'] => {
  const { length } = JSON.stringify(request);
  return length > REQUEST_CHARS_MAX ? { characters: length } : request;
};

/** The stream of the object that an id, or its beginning, names; null: none. */
function streamOf({ sandboxes, containers }: Shown, id: string): string | null {
  if (id === '') return null;
  const containerId = wholeId(containers, id);
  if (containers.has(containerId)) return containerStream(containerId);
  const podSandboxId = wholeId(sandboxes, id);
  return sandboxes.has(podSandboxId) ? sandboxStream(podSandboxId) : null;
}

/** Of the pod that an id, or its beginning, belongs to; '' where there is none. */
function namespaceOf({ sandboxes, containers }: Shown, id: string): string {
  if (id === '') return '';
  const podSandboxId = containers.get(wholeId(containers, id))?.podSandboxId ?? wholeId(sandboxes, id);
  return sandboxes.get(podSandboxId)?.config.metadata?.namespace ?? '';
}
