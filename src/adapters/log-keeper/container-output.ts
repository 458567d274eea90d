/**
 * The output of one container: its FIFOs, the unfinished line of each, and the log file both go to. Ends by itself
 * only in that its FIFOs do; everything else is asked of it. Must not make a writer wait, but for a slow disk.
 */
import type { Socket } from 'node:net';
import { FailureError } from '../../domain/model/errors.ts';
import { orAfter } from '../../platform/rpc/timeout.ts';
import { type AttachWish, createAttached } from './attached-clients.ts';
import { type FifoReader, openFifoReader } from './fifo-reader.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import type { UnwrittenOutput, Piece } from './unwritten-output.ts';
import type { RecordEncoder, StreamName } from './records.ts';
import type { KeptOutput, LogTrouble } from './types.ts';

/** Unfinished lines longer than this give their memory back when they are done. */
const KEPT_BYTES_MAX = 4096;
const NO_BYTES = Buffer.alloc(0);
const DOUBT = 'scribe: the log keeper was killed; lines that it had in hand, and unfinished ones, may be missing here';

/** The unfinished line of each stream, to be carried over to another keeper. */
export type HeldLines = { readonly [K in StreamName]?: Buffer };

export interface ContainerOutput {
  /** As it was opened, with the log path of the last reopen. */
  readonly request: () => KeptOutput;
  /** False once all its FIFOs have ended. */
  readonly isReading: () => boolean;
  /** Makes sure that the FIFOs which stand at their paths now are the ones being read. */
  readonly openFifos: () => void;
  readonly reopen: (logPath: string) => Promise<void>;
  /** Where another file has taken the place of its log, it goes on in that. */
  readonly rejoinLog: () => Promise<void>;
  readonly heldLines: () => HeldLines;
  /** Writes what an earlier keeper had in hand when it was killed, in the place of what it had written of it. */
  readonly writeAgain: (piece: Piece) => void;
  /** Says in the log that lines may be missing here. */
  readonly noteDoubt: () => void;
  /** Why its log will not be opened; null: it is, or may yet be. */
  readonly logObstacle: () => string | null;
  /** What of its log is lost now; null: nothing is. */
  readonly logTrouble: () => LogTrouble | null;
  /** Hands the client what comes from now on; at once an end when there is nothing to come. */
  readonly attach: (socket: Socket, wish: AttachWish) => void;
  /** Resolves when both FIFOs have ended, or after `timeoutMs`, and all that was read is written; closes everything. */
  readonly finish: (timeoutMs: number) => Promise<void>;
  /** Stops reading and waits for what is being written, so that another keeper can go on from here. */
  readonly abandon: () => Promise<void>;
}

export interface ContainerOutputOptions {
  readonly request: KeptOutput;
  readonly held: HeldLines;
  readonly encoder: RecordEncoder;
  readonly unwritten: UnwrittenOutput;
  readonly report: (message: string) => void;
  /** Called when the last FIFO has ended. */
  readonly onEnd: () => void;
}

interface Pipe {
  readonly stream: StreamName;
  readonly path: string;
  reader: FifoReader | null;
  held: Buffer;
  heldLength: number;
}

const hold = (target: Pipe, rest: Uint8Array): void => {
  if (rest.length > target.held.length) {
    // Powers of two: a line that comes byte by byte must not be copied to a new place for each of them.
    target.held = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(rest.length)));
  } else if (rest.length === 0 && target.held.length > KEPT_BYTES_MAX) {
    target.held = NO_BYTES;
  }
  target.held.set(rest);
  target.heldLength = rest.length;
};

const heldOf = (pipe: Pipe): Buffer => pipe.held.subarray(0, pipe.heldLength);

const readersOf = (pipes: readonly Pipe[]) => {
  const isReading = (): boolean => pipes.some((pipe) => pipe.reader !== null);

  const eachReader = (act: (reader: FifoReader) => void): void => {
    for (const { reader } of pipes) if (reader !== null) act(reader);
  };

  const resumeOnceWritten = (writing: Promise<void>): void => {
    eachReader((reader) => reader.pause());
    void writing.then(() => eachReader((reader) => reader.resume()));
  };

  return { isReading, eachReader, resumeOnceWritten };
};

const pipeOf = (stream: StreamName, path: string, held: Buffer = NO_BYTES): Pipe => {
  return { stream, path, reader: null, held, heldLength: held.length };
};
interface PipeEvents {
  /** False: what follows is read later. */
  readonly receive: (pipe: Pipe, length: number) => boolean;
  readonly ended: (pipe: Pipe) => void;
}

const openPipe = (pipe: Pipe, readArea: Buffer, hears: PipeEvents): void => {
  if (pipe.reader?.isAt(pipe.path) === true) return;
  // What is left in one that was replaced belongs to the log as well, and before what comes now.
  pipe.reader?.pull();
  const reader = openFifoReader({
    path: pipe.path,
    readArea,
    onData: (length) => hears.receive(pipe, length),
    onEnd: () => hears.ended(pipe),
  });
  pipe.reader?.close();
  pipe.reader = reader;
};

const openPipes = (pipes: readonly Pipe[], readArea: Buffer, hears: PipeEvents): void => {
  // One that can't be opened must not keep the other from being read.
  const failures = pipes.flatMap((pipe) => {
    try {
      openPipe(pipe, readArea, hears);
      return [];
    } catch (error) {
      return [error];
    }
  });
  if (failures.length > 0) throw failures[0];
};

const troubleOf = ({ containerId }: KeptOutput, log: LogFile | null): LogTrouble | null => {
  const trouble = log?.trouble() ?? null;
  return trouble === null ? null : { containerId, ...trouble };
};

/** Opens nothing but the log file: openFifos does the rest, and throws where that can't be done. */
export const createContainerOutput = (options: ContainerOutputOptions): ContainerOutput => {
  const { encoder, unwritten, report, onEnd } = options;
  let { request } = options;
  const { lineBytesMax } = request;
  const { logPath: path, logDirectory: directory } = request;
  const log =
    path === null
      ? null
      : openLogFile({ path, ...(directory === undefined ? {} : { directory }), note: encoder.note, report });
  let wakeFinisher = (): void => undefined;

  const pipes = [
    pipeOf('stdout', request.stdoutFifo, options.held.stdout),
    ...(request.stderrFifo === null ? [] : [pipeOf('stderr', request.stderrFifo, options.held.stderr)]),
  ];

  const attached = createAttached();
  const { isReading, eachReader, resumeOnceWritten } = readersOf(pipes);

  const receive = (pipe: Pipe, length: number): boolean => {
    // Every byte passes here once, as the container wrote it.
    attached.share(pipe.stream, encoder.readArea.subarray(0, length));
    if (log === null) return true;
    const place = log.place();
    const { containerId } = request;
    const piece = encoder.readArea.subarray(0, length);
    if (place !== null) unwritten.take({ containerId, stream: pipe.stream, place }, heldOf(pipe), piece);
    hold(pipe, encoder.encode(pipe.stream, heldOf(pipe), length, lineBytesMax, log.append));
    if (place !== null) unwritten.done();
    const writing = log.settled();
    if (writing === null) return true;
    resumeOnceWritten(writing);
    return false;
  };

  /** The line that nobody will finish becomes partial records. */
  const flush = (pipe: Pipe): void => {
    if (log !== null && pipe.heldLength > 0) encoder.encodeTail(pipe.stream, heldOf(pipe), lineBytesMax, log.append);
    hold(pipe, NO_BYTES);
  };

  const pipeEnded = (pipe: Pipe): void => {
    pipe.reader = null;
    flush(pipe);
    if (isReading()) return;
    attached.end();
    wakeFinisher();
    onEnd();
  };

  const openFifos = (): void => openPipes(pipes, encoder.readArea, { receive, ended: pipeEnded });

  const finish: ContainerOutput['finish'] = async (timeoutMs) => {
    eachReader((reader) => reader.pull());
    const startedMs = performance.now();
    if (isReading()) {
      const ended = new Promise<void>((resolve) => {
        wakeFinisher = resolve;
      });
      await orAfter(ended, timeoutMs, undefined);
    }
    for (const pipe of pipes) {
      pipe.reader?.close();
      pipe.reader = null;
      flush(pipe);
    }
    attached.end();
    // A disk that hangs is not waited for either.
    if (log !== null) await orAfter(log.close(), timeoutMs - (performance.now() - startedMs), undefined);
  };

  return {
    request: () => request,
    isReading,
    openFifos,
    reopen: async (logPath) => {
      if (log === null) {
        throw new FailureError(
          'WrongState',
          `The output of container ${request.containerId} is discarded, so there is no log to open anew at ${logPath}.`,
        );
      }
      await log.reopen(logPath);
      request = { ...request, logPath };
    },
    rejoinLog: async () => log?.rejoin(),
    writeAgain: ({ stream, place, held, data }) => {
      const pipe = pipes.find((one) => one.stream === stream);
      if (log === null || pipe === undefined || data.length > encoder.readArea.length) return;
      log.cutBackTo(place);
      encoder.readArea.set(data);
      hold(pipe, encoder.encode(stream, held, data.length, lineBytesMax, log.append));
    },
    noteDoubt: () => log?.say(DOUBT),
    logObstacle: () => log?.obstacle() ?? null,
    logTrouble: () => troubleOf(request, log),
    heldLines: () => Object.fromEntries(pipes.map((pipe) => [pipe.stream, heldOf(pipe)])),
    attach: (socket, wish) => {
      attached.add(socket, wish);
      if (!isReading()) attached.end();
    },
    finish,
    abandon: async () => {
      eachReader((reader) => reader.close());
      attached.drop();
      await log?.settled();
    },
  };
};
