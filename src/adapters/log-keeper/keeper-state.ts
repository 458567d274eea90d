/**
 * The keeper's state file: which process keeps the logs, and what it reads. Written by that process whenever it
 * changes, read by the one that takes over from it, and by the daemon that looks for it. It need survive no crash of
 * the machine, for no container does, so it is replaced whole but not synced.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { HeldLines } from './container-output.ts';
import { isObject } from '../../domain/values/json.ts';
import { parseKeptOutput } from './protocol.ts';
import { HELD_BYTES_MAX } from './records.ts';
import type { KeptOutput } from './types.ts';

const FILE_MODE = 0o600;
const BOOT_ID_PATH = '/proc/sys/kernel/random/boot_id';

export interface KeeperName {
  readonly pid: number;
  readonly startTicks: string;
}

export interface KeptContainer {
  readonly request: KeptOutput;
  /** Of a keeper that ended in order; one that was killed had no chance to say. */
  readonly held: HeldLines;
}

export interface KeeperState {
  readonly owner: KeeperName | null;
  /** It ended in order, with all that it had read written or in here. */
  readonly isWhole: boolean;
  readonly containers: readonly KeptContainer[];
}

export const NO_STATE: KeeperState = { owner: null, isWhole: true, containers: [] };

export const statePath = (dir: string): string => join(dir, 'state.json');

export const readBootId = (): string => readFileSync(BOOT_ID_PATH, 'utf8').trim();

const encodeHeld = (held: HeldLines): Record<string, string> =>
  Object.fromEntries(
    Object.entries(held)
      .filter(([, bytes]) => bytes.length > 0)
      .map(([stream, bytes]) => [stream, bytes.toString('base64')]),
  );

const decodeHeldLine = (value: unknown): Buffer =>
  typeof value === 'string' ? Buffer.from(value, 'base64').subarray(0, HELD_BYTES_MAX) : Buffer.alloc(0);

const decodeContainer = (value: unknown, report: (message: string) => void): readonly KeptContainer[] => {
  try {
    const held = isObject(value) && isObject(value.held) ? value.held : {};
    return [
      {
        request: parseKeptOutput(value),
        held: { stdout: decodeHeldLine(held.stdout), stderr: decodeHeldLine(held.stderr) },
      },
    ];
  } catch (error) {
    report(`A container in the state file is left out: ${messageOf(error)}`);
    return [];
  }
};

/**
 * What a state file says. Never fails: what can't be read, or is of an earlier boot, is reported and counts as
 * nothing; the daemon knows its containers anyway and opens them again.
 */
export const parseKeeperState = (text: string, bootId: string, report: (message: string) => void): KeeperState => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    report(`The state file is damaged and is not used: ${messageOf(error)}`);
    return NO_STATE;
  }
  if (!isObject(value) || value.bootId !== bootId || !Array.isArray(value.containers)) return NO_STATE;
  const { pid, startTicks } = value;
  return {
    owner: typeof pid === 'number' && typeof startTicks === 'string' ? { pid, startTicks } : null,
    isWhole: value.isWhole === true,
    containers: value.containers.flatMap((container) => decodeContainer(container, report)),
  };
};

/** Reads the state as the keeper does; a file that is missing or can't be read counts as nothing. */
export const readKeeperState = (dir: string, bootId: string, report: (message: string) => void): KeeperState => {
  let text: string;
  try {
    text = readFileSync(statePath(dir), 'utf8');
  } catch (error) {
    const isNew = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (!isNew) report(`The state file can't be read and is not used: ${messageOf(error)}`);
    return NO_STATE;
  }
  return parseKeeperState(text, bootId, report);
};

/** Replaces <dir>/state.json; throws FailureError HostFailed. */
export const writeKeeperState = (
  dir: string,
  bootId: string,
  owner: KeeperName,
  kept: readonly KeptContainer[],
  isWhole: boolean,
): void => {
  const path = statePath(dir);
  const containers = kept.map(({ request, held }) => ({ ...request, held: encodeHeld(held) }));
  try {
    writeFileSync(`${path}.new`, JSON.stringify({ bootId, ...owner, isWhole, containers }), { mode: FILE_MODE });
    renameSync(`${path}.new`, path);
  } catch (error) {
    throw new FailureError('HostFailed', `Writing the log keeper's state to ${path} failed: ${messageOf(error)}`);
  }
};
