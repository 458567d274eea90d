/** Where an export goes: a stream, a file, or a receiver of OTLP over HTTP. What `send` has resolved, the target has. */
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, failure } from '../command.ts';
import { type Output, write } from '../io.ts';

export interface Target {
  readonly send: (text: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

const FILE_MODE = 0o600;
const POST_TIMEOUT_MS = 10_000;
const TRIES_WAIT_MS = [100, 400, 1600, 5000] as const;

export const streamTarget = (output: Output): Target => ({
  send: (text) => write(output, text),
  close: async () => {},
});

/** Appends, so that a cursor's next lines follow the last. */
export const fileTarget = async (path: string): Promise<Target> => {
  const refused = (thrown: Error): never => {
    throw failure(`--output ${path} cannot be written: ${thrown.message}.`, thrown);
  };
  const file = await open(path, 'a', FILE_MODE).catch(refused);
  return {
    send: async (text) => {
      await file.writeFile(text).catch(refused);
      // Devices and pipes have nothing to make durable.
      await file.datasync().catch((thrown: NodeJS.ErrnoException) => thrown.code === 'EINVAL' || refused(thrown));
    },
    close: () => file.close(),
  };
};

/** Whether it was taken; throws for an answer that another try will not change. */
const post = async (url: string, body: string): Promise<string | null> => {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(POST_TIMEOUT_MS),
    });
    await response.body?.cancel();
    if (response.ok) return null;
    const isFinal = response.status >= 400 && response.status < 500 && response.status !== 429;
    if (isFinal) throw failure(`${url} refused the records: HTTP status ${response.status}.`);
    return `it answered HTTP status ${response.status}`;
  } catch (thrown) {
    if (thrown instanceof CliError) throw thrown;
    const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
    return cause instanceof Error ? cause.message : String(cause);
  }
};

/** Tries again for a while; what was not taken is for the next export, from the same cursor. */
export const otlpTarget = (endpoint: string): Target => {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/logs`;
  return {
    send: async (text) => {
      for (const waitMs of [...TRIES_WAIT_MS, null]) {
        const problem = await post(url, text);
        if (problem === null) return;
        if (waitMs === null)
          throw failure(
            `${url} did not take the records: ${problem}. With --cursor-file the next export goes on where this one ended.`,
          );
        await sleep(waitMs);
      }
    },
    close: async () => {},
  };
};
