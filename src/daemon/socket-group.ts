/** Which group the CRI socket belongs to. */
import { readFile } from 'node:fs/promises';
import { FailureError } from '../domain/model/errors.ts';

/** A name of /etc/group or a number; empty leaves the socket to root. Throws FailureError for a name that is not there. */
export async function gidOfGroup(group: string): Promise<number | null> {
  if (group === '') return null;
  if (/^\d+$/.test(group)) return Number(group);
  const line = (await readFile('/etc/group', 'utf8')).split('\n').find((entry) => entry.startsWith(`${group}:`));
  const gid = line?.split(':')[2];
  if (gid === undefined)
    throw new FailureError(
      'HostFailed',
      `serve.socket_group "${group}" is not in /etc/group; name a group that is, or its number.`,
    );
  return Number(gid);
}
