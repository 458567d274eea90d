/**
 * Counters of the interfaces of a network namespace, as one of its processes sees them. Never enters the namespace: the
 * kernel shows them in the process's own directory. Of very many interfaces, only the first are told.
 */
import { isAlive, type ProcessName } from '../../platform/linux/processes.ts';
import { readStart } from './read-start.ts';
import type { InterfaceCounters } from './types.ts';

const LOOPBACK = 'lo';

/** The text of /proc/PID/net/dev; lines that are not as the kernel writes them are passed over. */
export const parseNetDev = (text: string): readonly InterfaceCounters[] =>
  text.split('\n').flatMap((line) => {
    const [, name, numbers = ''] = /^\s*([^\s:]+):\s*([\d\s]+)$/.exec(line) ?? [];
    if (name === undefined || name === LOOPBACK) return [];
    const fields = numbers.trim().split(/\s+/).map(BigInt);
    if (fields.length < 16) return [];
    const [rxBytes = 0n, rxPackets = 0n, rxErrors = 0n, rxDropped = 0n] = fields;
    const [txBytes = 0n, txPackets = 0n, txErrors = 0n, txDropped = 0n] = fields.slice(8);
    return [{ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped }];
  });

/** Interfaces but loopback; null when the process is gone, and its pid perhaps another's. */
export const readInterfaces = async (
  process: ProcessName,
  buffer: Buffer,
): Promise<readonly InterfaceCounters[] | null> => {
  const text = await readStart(`/proc/${process.pid}/net/dev`, buffer);
  // Asked afterwards: what was read was this process's own if it is still there.
  return text !== undefined && (await isAlive(process)) ? parseNetDev(text) : null;
};
