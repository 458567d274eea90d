/**
 * The node's audit policy, where calls come in: which reads become records, and which words of commands are sealed before
 * anybody writes them down. Decides nothing of the calls themselves, and remembers nothing.
 */
import type { AuditRule } from '../domain/call/audit.ts';
import { auditPolicy } from '../domain/call/audit.ts';
import { wholeId } from '../domain/call/ids.ts';
import type { OciArg } from '../domain/model/oci.ts';
import { containerStream, sandboxStream } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { AuditedCommand } from '../domain/model/streams.ts';
import { checkWords } from '../domain/oci/checks.ts';
import type { ReadDetails, RecordRead, SubmitCall } from '../engine/ports.ts';
import type { ReadRow } from '../journal/types.ts';

type Shown = Pick<Readonly<NodeState>, 'sandboxes' | 'containers'>;

interface AuditOptions {
  readonly rules: readonly AuditRule[];
  readonly state: Shown;
  readonly submit: SubmitCall;
  readonly appendRead: (row: ReadRow) => void;
  readonly tokenOf: (value: string) => string;
}

export interface Audit {
  readonly recordRead: RecordRead;
  readonly audited: (method: 'ExecSync' | 'Exec', containerId: string, cmd: readonly string[]) => AuditedCommand;
}

/** Of a longer request only its size is recorded: nobody asks so much who only reads. */
const REQUEST_CHARS_MAX = 64 * 1024;

export function createAudit({ rules, state, submit, appendRead, tokenOf }: AuditOptions): Audit {
  const levelOf = auditPolicy(rules);

  const submitRead = async (row: ReadRow, { caller, request, failure }: ReadDetails): Promise<void> => {
    const about = streamOf(state, row.subject);
    const { unrecorded } = await submit(
      {
        method: 'Read',
        rpc: row.method,
        ...(about === null ? {} : { about }),
        request: bounded(request),
        durationNs: String(row.durationNs),
        ...(failure === null ? {} : { failure }),
      },
      { caller, deadlineNs: null },
    );
    // While the disk is full there is room for rows alone.
    if (unrecorded === true) appendRead(row);
  };

  return {
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
      if (levelOf(method, () => namespaceOf(state, containerId)) !== 'metadata') return { cmd };
      // Behind tokens nobody looks at the words again.
      checkWords('cmd', cmd);
      const [program, ...args] = cmd;
      const sealed = args.map((word): OciArg => (word === '' ? '' : { token: tokenOf(word) }));
      return { cmd: program === undefined ? [] : [program, ...sealed], auditLevel: 'metadata' };
    },
  };
}

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
