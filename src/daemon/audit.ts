/**
 * The node's audit policy, where calls come in: which reads become records, and which words of commands are sealed before
 * anybody writes them down. Decides nothing of the calls themselves, and remembers nothing.
 */
import type { AuditRule } from '../domain/call/audit.ts';
import { auditPolicy } from '../domain/call/audit.ts';
import { wholeId } from '../domain/call/ids.ts';
import { type SealRules, type Seals, sealsOf } from '../domain/call/sealing.ts';
import { containerStream, sandboxStream } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { AuditedCommand } from '../domain/model/streams.ts';
import { checkWords } from '../domain/oci/checks.ts';
import type { ReadDetails, RecordRead, SubmitCall } from '../engine/ports.ts';
import type { ReadRow } from '../journal/types.ts';

type Shown = Pick<Readonly<NodeState>, 'sandboxes' | 'containers'>;

interface AuditOptions {
  readonly rules: readonly AuditRule[];
  readonly seal: SealRules;
  readonly state: Shown;
  readonly submit: SubmitCall;
  readonly appendRead: (row: ReadRow) => void;
  readonly tokenOf: (value: string) => string;
}

export interface Audit {
  readonly seals: Seals;
  readonly recordRead: RecordRead;
  readonly audited: (method: 'ExecSync' | 'Exec', containerId: string, cmd: readonly string[]) => AuditedCommand;
}

/** Of a longer request only its size is recorded: nobody asks so much who only reads. */
const REQUEST_CHARS_MAX = 64 * 1024;

export function createAudit({ rules, seal, state, submit, appendRead, tokenOf }: AuditOptions): Audit {
  const levelOf = auditPolicy(rules);
  const seals = sealsOf(seal, tokenOf);
  const sealsWords = seal.execOptions.length + seal.execArguments.length > 0;

  const submitRead = async (row: ReadRow, { caller, request, failure }: ReadDetails): Promise<void> => {
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
      { caller, deadlineNs: null },
    );
    // While the disk is full there is room for rows alone.
    if (unrecorded === true) appendRead(row);
  };

  return {
    seals,
    recordRead(row, details) {
      switch (levelOf(row.method, () => namespaceOf(state, row.subject))) {
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
      const isMetadata = levelOf(method, () => namespaceOf(state, containerId)) === 'metadata';
      if (!isMetadata && !sealsWords) return { cmd };
      // Behind tokens nobody looks at the words again.
      checkWords('cmd', cmd);
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
