/**
 * The log keeper's operations: which containers are open, and what a client may ask for. Owns the state file from
 * the first hello on, and touches no FIFO before it: a keeper that was started and then forgotten by a dying daemon
 * must not read what belongs to the one that serves.
 */
import type { Socket } from 'node:net';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { AttachWish } from './attached-clients.ts';
import { orAfter } from '../../platform/rpc/timeout.ts';
import { type ContainerOutput, createContainerOutput, type HeldLines } from './container-output.ts';
import { openUnwrittenOutput, readUnwrittenOutput } from './unwritten-output.ts';
import { type KeeperName, readBootId, readKeeperState, writeKeeperState } from './keeper-state.ts';
import { type Greeting, type KeeperRequest, PROTOCOL_VERSION, REQUEST_TIMEOUT_MS } from './protocol.ts';
import type { RecordEncoder } from './records.ts';
import type { KeptOutput } from './types.ts';

/** How long a slow disk may hold up the end of a keeper. */
const HANDOVER_TIMEOUT_MS = 2000;
/** Whoever has a log opened anew, and gets no answer in time, has put the old file back by then. */
const PUT_BACK_WITHIN_MS = REQUEST_TIMEOUT_MS + 15_000;
const ATTACH_LACKS = 'nobody can be attached to it';

export interface Keeper {
  /** Rejects with FailureError. `bye` is answered here like list: ending is the process's affair. */
  readonly perform: (request: KeeperRequest) => Promise<unknown>;
  /** Hands a container's output to a client whose wish for it `perform` has granted. */
  readonly attach: (containerId: string, socket: Socket, wish: AttachWish) => void;
  /** False once every container's output has ended: nobody would miss this process. */
  readonly isReading: () => boolean;
  /** Stops reading and writes down all that a successor needs to lose nothing. */
  readonly handOver: () => Promise<void>;
}

export interface KeeperOptions {
  /** Directory of the state file. */
  readonly dir: string;
  readonly name: KeeperName;
  readonly encoder: RecordEncoder;
  readonly report: (message: string) => void;
  /** Called before anything is taken over: from now on clients should find this keeper. */
  readonly onAdopted: () => void;
  /** Called when the output of a container has ended. */
  readonly onEnd: () => void;
}

type Outputs = Map<string, ContainerOutput>;

/** Writes down what is open, for a successor. */
const createSaving = (
  { dir, name, report }: Pick<KeeperOptions, 'dir' | 'name' | 'report'>,
  bootId: string,
  outputs: Outputs,
) => {
  const save = (heldOf: (output: ContainerOutput) => HeldLines, isWhole: boolean): void => {
    const kept = [...outputs.values()].map((output) => ({ request: output.request(), held: heldOf(output) }));
    writeKeeperState(dir, bootId, name, kept, isWhole);
  };

  const saveOpen = (): void => save(() => ({}), false);

  /** For changes that a successor can do without: the client that asked for them knows of them too. */
  const trySaveOpen = (): void => {
    try {
      saveOpen();
    } catch (error) {
      report(messageOf(error));
    }
  };

  return { save, saveOpen, trySaveOpen };
};

const createClosing = (outputs: Outputs, closed: () => void) => {
  const closing = new Map<string, Promise<void>>();

  const finish = async (containerId: string, output: ContainerOutput, timeoutMs: number): Promise<void> => {
    try {
      await output.finish(timeoutMs);
    } finally {
      outputs.delete(containerId);
      closing.delete(containerId);
    }
    closed();
  };

  const close = async (containerId: string, timeoutMs: number): Promise<void> => {
    const output = outputs.get(containerId);
    if (output === undefined) return;
    const under = closing.get(containerId) ?? finish(containerId, output, timeoutMs);
    closing.set(containerId, under);
    await under;
  };

  return { close, under: (containerId: string): Promise<void> | undefined => closing.get(containerId) };
};

const outputOf = (outputs: Outputs, containerId: string, consequence: string): ContainerOutput => {
  const output = outputs.get(containerId);
  if (output !== undefined) return output;
  throw new FailureError('WrongState', `The output of container ${containerId} is not being read, so ${consequence}.`);
};

const refuseOtherFifos = (before: KeptOutput, { containerId, stdoutFifo, stderrFifo }: KeptOutput): void => {
  if (before.stdoutFifo !== stdoutFifo || before.stderrFifo !== stderrFifo)
    throw new FailureError('WrongState', `The output of container ${containerId} is read from other FIFOs already.`);
};

const refuseWithoutLog = (output: ContainerOutput): void => {
  const obstacle = output.logObstacle();
  if (obstacle === null) return;
  const { containerId } = output.request();
  throw new FailureError('HostFailed', `The log of container ${containerId} cannot be written: ${obstacle}.`);
};

/** Nobody could say that a log was opened anew, for the daemon had died or its time was up: its client puts the old file back. */
const rejoinLogs = (outputs: Iterable<ContainerOutput>, report: KeeperOptions['report']): void => {
  for (const output of outputs)
    output.rejoinLog().catch((error: unknown) => report(`Going on in a log that was replaced: ${messageOf(error)}`));
};

export const createKeeper = ({ dir, name, encoder, report, onAdopted, onEnd }: KeeperOptions): Keeper => {
  const bootId = readBootId();
  const unwritten = openUnwrittenOutput(dir, report);
  const outputs = new Map<string, ContainerOutput>();
  const { save, saveOpen, trySaveOpen } = createSaving({ dir, name, report }, bootId, outputs);
  const closing = createClosing(outputs, trySaveOpen);
  let adopted = false;
  let doubtful: readonly string[] = [];

  const add = (request: KeptOutput, held: HeldLines): ContainerOutput => {
    const output = createContainerOutput({ request, held, encoder, unwritten, report, onEnd });
    outputs.set(request.containerId, output);
    return output;
  };

  /** Takes over what an earlier keeper read. A FIFO that has gone in the meantime is at its end. */
  const adopt = (): void => {
    if (adopted) return;
    onAdopted();
    adopted = true;
    const { containers, isWhole } = readKeeperState(dir, bootId, report);
    const piece = isWhole ? null : readUnwrittenOutput(dir);
    if (!isWhole) doubtful = containers.map(({ request }) => request.containerId);
    for (const { request, held } of containers) {
      try {
        const output = add(request, held);
        if (piece?.containerId === request.containerId) output.writeAgain(piece);
        if (!isWhole) output.noteDoubt();
        output.openFifos();
      } catch (error) {
        report(`Taking over the output of container ${request.containerId}: ${messageOf(error)}`);
      }
    }
    unwritten.done();
    trySaveOpen();
  };

  const greet = (): Greeting => ({
    protocol: PROTOCOL_VERSION,
    ...name,
    containers: [...outputs.values()].map((output) => output.request()),
    doubtful,
  });

  const open = async (request: KeptOutput, isNew: boolean): Promise<void> => {
    const { containerId } = request;
    await closing.under(containerId);
    const existing = outputs.get(containerId);
    if (existing !== undefined) {
      refuseOtherFifos(existing.request(), request);
      existing.openFifos();
      return;
    }
    const output = add(request, {});
    try {
      if (isNew) refuseWithoutLog(output);
      output.openFifos();
      saveOpen();
    } catch (error) {
      outputs.delete(containerId);
      await output.finish(0);
      throw error;
    }
  };

  const reopen = async (containerId: string, logPath: string): Promise<void> => {
    const output = outputOf(outputs, containerId, "its log can't be opened anew");
    await output.reopen(logPath);
    setTimeout(() => rejoinLogs([output], report), PUT_BACK_WITHIN_MS).unref();
    trySaveOpen();
  };

  const perform = async (request: KeeperRequest): Promise<unknown> => {
    switch (request.op) {
      case 'hello':
        if (request.protocol === PROTOCOL_VERSION) adopt();
        rejoinLogs(outputs.values(), report);
        return greet();
      case 'open':
        return open(request, request.isNew);
      case 'reopen':
        return reopen(request.containerId, request.logPath);
      case 'close':
        return closing.close(request.containerId, request.timeoutMs);
      case 'attach':
        outputOf(outputs, request.containerId, ATTACH_LACKS);
        return null;
      case 'troubles':
        return [...outputs.values()].flatMap((output) => output.logTrouble() ?? []);
      case 'list':
      case 'bye':
        return [...outputs.keys()];
    }
  };

  return {
    perform,
    attach: (containerId, socket, wish) => outputs.get(containerId)?.attach(socket, wish),
    isReading: () => outputs.values().some((output) => output.isReading()),
    handOver: async () => {
      if (!adopted) return;
      const abandoned = Promise.all(outputs.values().map((output) => output.abandon()));
      await orAfter(abandoned, HANDOVER_TIMEOUT_MS, undefined);
      save((output) => output.heldLines(), true);
    },
  };
};
