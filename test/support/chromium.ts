/**
 * A real Chromium without a screen, told what to do over its debugging pipe (the DevTools protocol): pages, keys, mice,
 * what a script in the page says, and what screen readers are told. Ends with its owner; everything is bounded.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPendingReplies } from '../../src/platform/rpc/pending.ts';
import { type Owner, onCleanup } from './cleanup.ts';
import { tempDir } from './temp-dir.ts';

type Params = Readonly<Record<string, unknown>>;

export interface Page {
  /** What an expression in the page says; a promise is waited for. */
  readonly evaluate: <T>(expression: string) => Promise<T>;
  /** Waits until an expression is truthy, and gives it. */
  readonly until: <T>(expression: string, what?: string) => Promise<T>;
  readonly goto: (url: string) => Promise<void>;
  /** A key by its name: "a", "+", "Enter", "ArrowLeft". */
  readonly press: (key: string) => Promise<void>;
  readonly type: (text: string) => Promise<void>;
  readonly click: (selector: string) => Promise<void>;
  readonly wheel: (selector: string, deltaX: number, deltaY: number, modifiers?: number) => Promise<void>;
  readonly screenshot: (file: string) => Promise<void>;
  readonly close: () => Promise<void>;
  /** Any command of the protocol. */
  readonly send: <T = unknown>(method: string, params?: Params) => Promise<T>;
  /** What the page said on its console, or threw, that is an error. */
  readonly problems: () => readonly string[];
}

export interface Chromium {
  readonly page: (options?: { readonly scheme?: 'light' | 'dark' }) => Promise<Page>;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly params?: Params;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const ANSWER_MS = 30_000;
const UNTIL_MS = 20_000;
const BETWEEN_LOOKS_MS = 20;
const WIDTH = 1280;
const HEIGHT = 800;
/** fds of the debugging pipe. */
const [TO, FROM] = [3, 4];

const FLAGS = [
  ...['--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--no-first-run', '--disable-gpu'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-extensions', '--mute-audio'],
  ...['--disable-dev-shm-usage', '--hide-scrollbars', `--window-size=${WIDTH},${HEIGHT}`, 'about:blank'],
];

const KEY_CODES: Readonly<Record<string, number>> = {
  ...{ Enter: 13, Escape: 27, PageUp: 33, PageDown: 34, End: 35, Home: 36, Tab: 9 },
  ...{ ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 },
};

/** Messages are JSON, each ended by a zero byte. */
const readMessages = (stream: Readable, onMessage: (message: Message) => void): void => {
  let held = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    const texts = (held + chunk).split('\0');
    held = texts.pop() ?? '';
    for (const text of texts) onMessage(JSON.parse(text) as Message);
  });
};

const connect = (child: ChildProcess) => {
  const replies = createPendingReplies<unknown>();
  const listeners: ((message: Message) => void)[] = [];
  let lastId = 0;
  readMessages(child.stdio[FROM] as Readable, (message) => {
    const { id, error, result } = message;
    if (id === undefined) for (const listener of listeners) listener(message);
    else if (error !== undefined) replies.reject(id, new Error(error.message));
    else replies.resolve(id, result);
  });
  child.once('close', () => replies.close(new Error('Chromium has ended.')));
  return {
    onEvent: (listener: (message: Message) => void) => listeners.push(listener),
    send: async <T>(method: string, params: Params = {}, sessionId?: string): Promise<T> => {
      lastId += 1;
      const bound = { timeoutMs: ANSWER_MS, late: () => new Error(`Chromium did not answer ${method}.`) };
      const reply = replies.wait(lastId, { bound });
      const message = { id: lastId, method, params, ...(sessionId === undefined ? {} : { sessionId }) };
      (child.stdio[TO] as Writable).write(`${JSON.stringify(message)}\0`);
      return (await reply) as T;
    },
  };
};

type Connection = ReturnType<typeof connect>;

interface Evaluated {
  readonly result: { readonly value?: unknown };
  readonly exceptionDetails?: { readonly text: string; readonly exception?: { readonly description?: string } };
}

const pageOf = (connection: Connection, sessionId: string, targetId: string): Page => {
  const problems: string[] = [];
  connection.onEvent(({ method, sessionId: session, params }) => {
    if (session !== sessionId) return;
    const isError =
      method === 'Runtime.exceptionThrown' || (method === 'Runtime.consoleAPICalled' && params?.type === 'error');
    const entry = method === 'Log.entryAdded' ? (params?.entry as { level: string } | undefined) : undefined;
    if (isError || entry?.level === 'error') problems.push(JSON.stringify(params));
  });
  const send = <T>(method: string, params?: Params): Promise<T> => connection.send<T>(method, params, sessionId);

  const evaluate = async <T>(expression: string): Promise<T> => {
    const options = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await send<Evaluated>('Runtime.evaluate', options);
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as T;
  };

  const middleOf = (selector: string): Promise<{ x: number; y: number }> =>
    evaluate(`(() => {
      const found = document.querySelector(${JSON.stringify(selector)});
      if (found === null) throw new Error('There is no ' + ${JSON.stringify(selector)});
      found.scrollIntoView({ block: 'nearest' });
      const box = found.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    })()`);

  return {
    evaluate,
    send,
    problems: () => problems,
    async until<T>(expression: string, what = expression) {
      const untilMs = performance.now() + UNTIL_MS;
      for (;;) {
        const value = await evaluate<T>(expression);
        if (value) return value;
        if (performance.now() > untilMs) throw new Error(`It did not come: ${what}`);
        await sleep(BETWEEN_LOOKS_MS);
      }
    },
    async goto(url) {
      await send('Page.navigate', { url });
    },
    async press(key) {
      const isText = key.length === 1;
      const code = { key, windowsVirtualKeyCode: KEY_CODES[key] ?? key.toUpperCase().charCodeAt(0) };
      const text = isText ? { text: key } : key === 'Enter' ? { text: '\r' } : {};
      await send('Input.dispatchKeyEvent', {
        type: isText || key === 'Enter' ? 'keyDown' : 'rawKeyDown',
        ...code,
        ...text,
      });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...code });
    },
    async type(text) {
      await send('Input.insertText', { text });
    },
    async click(selector) {
      const at = { ...(await middleOf(selector)), button: 'left', clickCount: 1 };
      await send('Input.dispatchMouseEvent', { type: 'mousePressed', ...at });
      await send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...at });
    },
    async wheel(selector, deltaX, deltaY, modifiers = 0) {
      const at = await middleOf(selector);
      await send('Input.dispatchMouseEvent', { type: 'mouseWheel', ...at, deltaX, deltaY, modifiers });
    },
    async close() {
      await connection.send('Target.closeTarget', { targetId });
    },
    async screenshot(file) {
      const { data } = await send<{ data: string }>('Page.captureScreenshot', { format: 'png' });
      await writeFile(file, Buffer.from(data, 'base64'));
    },
  };
};

/** Starts a browser of its own, with nothing in it. Rejects where there is none: scripts/setup.sh installs it. */
export const startChromium = async (owner: Owner): Promise<Chromium> => {
  const profile = await tempDir(owner);
  const child = spawn('chromium', [`--user-data-dir=${profile}`, ...FLAGS], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOME: profile },
  });
  onCleanup(owner, async () => {
    const ended = child.exitCode !== null ? null : once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  await once(child, 'spawn');
  for (const fd of [TO, FROM]) child.stdio[fd]?.on('error', () => undefined);
  const connection = connect(child);
  return {
    async page({ scheme = 'light' } = {}) {
      const { targetId } = await connection.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
      const attached = await connection.send<{ sessionId: string }>('Target.attachToTarget', {
        targetId,
        flatten: true,
      });
      const page = pageOf(connection, attached.sessionId, targetId);
      await Promise.all(['Page.enable', 'Runtime.enable', 'Log.enable'].map((method) => page.send(method)));
      await page.send('Emulation.setDeviceMetricsOverride', {
        ...{ width: WIDTH, height: HEIGHT, deviceScaleFactor: 1, mobile: false },
      });
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      return page;
    },
  };
};
