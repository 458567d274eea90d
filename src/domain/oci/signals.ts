/**
 * Signals: CRI's Signal enum, Linux's numbers and the text that image configs hold, into each other. The numbers are
 * those of x86 and ARM. Must not decide which signal a container is sent, beyond the order CRI gives.
 */
import type { ContainerConfig, Signal } from '../model/cri.ts';
import type { ImageConfig } from '../model/image-content.ts';
import { SIGTERM } from '../values/signals.ts';

/** Position is the value of the enum; SIGRTMIN (35) and what follows are calculated. */
const named: readonly (readonly [name: string, linux: number])[] = [
  ['SIGABRT', 6],
  ['SIGALRM', 14],
  ['SIGBUS', 7],
  ['SIGCHLD', 17],
  ['SIGCLD', 17],
  ['SIGCONT', 18],
  ['SIGFPE', 8],
  ['SIGHUP', 1],
  ['SIGILL', 4],
  ['SIGINT', 2],
  ['SIGIO', 29],
  ['SIGIOT', 6],
  ['SIGKILL', 9],
  ['SIGPIPE', 13],
  ['SIGPOLL', 29],
  ['SIGPROF', 27],
  ['SIGPWR', 30],
  ['SIGQUIT', 3],
  ['SIGSEGV', 11],
  ['SIGSTKFLT', 16],
  ['SIGSTOP', 19],
  ['SIGSYS', 31],
  ['SIGTERM', 15],
  ['SIGTRAP', 5],
  ['SIGTSTP', 20],
  ['SIGTTIN', 21],
  ['SIGTTOU', 22],
  ['SIGURG', 23],
  ['SIGUSR1', 10],
  ['SIGUSR2', 12],
  ['SIGVTALRM', 26],
  ['SIGWINCH', 28],
  ['SIGXCPU', 24],
  ['SIGXFSZ', 25],
];

/** SIGRTMIN as C libraries count it: the kernel's first two real-time signals are theirs. */
const RTMIN = 34;
const RTMAX = 64;
const CRI_RTMIN = named.length + 1;
/** SIGRTMIN+15 is the last that the enum counts from below. */
const LAST_FROM_BELOW = RTMIN + 15;

const CRI_RUNTIME_DEFAULT: Signal = 0;

export const isCriSignal = (signal: Signal): boolean =>
  Number.isInteger(signal) && signal >= CRI_RUNTIME_DEFAULT && signal <= CRI_RTMIN + (RTMAX - RTMIN);

/** Linux number of a value of the enum; null for SIGNAL_RUNTIME_DEFAULT and unknown values. */
export function linuxSignalOf(signal: Signal): number | null {
  if (signal >= CRI_RTMIN && isCriSignal(signal)) return signal - CRI_RTMIN + RTMIN;
  return named[signal - 1]?.[1] ?? null;
}

/** Value of the enum for a Linux number; SIGNAL_RUNTIME_DEFAULT where the enum has none (32, 33). */
export function criSignalOf(linux: number): Signal {
  if (linux >= RTMIN && linux <= RTMAX) return linux - RTMIN + CRI_RTMIN;
  return named.findIndex(([, number]) => number === linux) + 1;
}

/** "SIGTERM", "SIGRTMIN+3", "SIGRTMAX-2"; "signal 32" where there is no name. */
export function signalName(linux: number): string {
  if (linux === RTMIN) return 'SIGRTMIN';
  if (linux === RTMAX) return 'SIGRTMAX';
  if (linux > RTMIN && linux <= LAST_FROM_BELOW) return `SIGRTMIN+${linux - RTMIN}`;
  if (linux > LAST_FROM_BELOW && linux < RTMAX) return `SIGRTMAX-${RTMAX - linux}`;
  return named.find(([, number]) => number === linux)?.[0] ?? `signal ${linux}`;
}

/** An image config's StopSignal: a number, a name with or without SIG, or RTMIN+n, RTMAX-n. null when it is none. */
export function parseSignal(text: string): number | null {
  if (/^\d{1,2}$/.test(text)) {
    const number = Number(text);
    return number >= 1 && number <= RTMAX ? number : null;
  }
  const name = text.toUpperCase().replace(/^SIG/, '');
  const realTime = /^(RTMIN|RTMAX)(?:([+-])(\d{1,2}))?$/.exec(name);
  if (realTime === null) return named.find(([known]) => known === `SIG${name}`)?.[1] ?? null;
  const [, base, sign, offset] = realTime;
  const number = (base === 'RTMIN' ? RTMIN : RTMAX) + Number(offset ?? 0) * (sign === '-' ? -1 : 1);
  return number >= RTMIN && number <= RTMAX ? number : null;
}

/** The signal StopContainer begins with, as a Linux number: the config's, else the image's, else SIGTERM. */
export function stopSignalOf(config: ContainerConfig, imageConfig: ImageConfig): number {
  const own = linuxSignalOf(config.stopSignal ?? CRI_RUNTIME_DEFAULT);
  if (own !== null) return own;
  return (imageConfig.stopSignal ? parseSignal(imageConfig.stopSignal) : null) ?? SIGTERM;
}
