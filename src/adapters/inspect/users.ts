/**
 * Who a container's process is: CRI's user, or the image's, looked up in the image's /etc/passwd and /etc/group. Pure
 * but for asking for those files, and only for those it needs. Nothing in the files is trusted: lines of another form
 * do not count, and ids outside of what Linux can hold are no ids.
 */
import type { ContainerFacts, ContainerQuestions } from '../../domain/model/container-facts.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { idOf, isNumber, LAST_ID } from '../../domain/values/user-ids.ts';

const PASSWD = '/etc/passwd';
const GROUP = '/etc/group';
/** Read and split on the daemon's own thread: a megabyte takes some milliseconds. */
const MAX_FILE_BYTES = 1024 * 1024;
/** The kernel's NGROUPS_MAX. */
const MAX_GROUPS = 65536;

/** Reads a file of the container's image; null when there is none. */
export type ReadFile = (path: string, maxBytes: number) => Promise<Buffer | null>;

interface PasswdEntry {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

interface GroupEntry {
  readonly name: string;
  readonly gid: number;
  readonly members: readonly string[];
}

/** name:password:uid:gid:… */
const parsePasswd = (text: string): readonly PasswdEntry[] =>
  text.split('\n').flatMap((line) => {
    const [name, , uidText, gidText] = line.split(':', 4);
    const uid = idOf(uidText);
    const gid = idOf(gidText);
    return name && uid !== null && gid !== null ? [{ name, uid, gid }] : [];
  });

/** name:password:gid:member,member */
const parseGroup = (text: string): readonly GroupEntry[] =>
  text.split('\n').flatMap((line) => {
    const [name, , gidText, members = ''] = line.split(':', 4);
    const gid = idOf(gidText);
    return name && gid !== null ? [{ name, gid, members: members.split(',').map((member) => member.trim()) }] : [];
  });

/** Where a user or group came from, for the message about what is wrong with it. */
interface Source {
  readonly reason: 'InvalidField' | 'ImageInvalid';
  readonly user: string;
  readonly group: string;
}

const CRI_SOURCE: Source = {
  reason: 'InvalidField',
  user: 'linux.security_context.run_as_username',
  group: 'linux.security_context.run_as_group',
};
const IMAGE_SOURCE: Source = {
  reason: 'ImageInvalid',
  user: "the user of the image's User",
  group: "the group of the image's User",
};

interface Wanted {
  readonly source: Source;
  /** A number or a name; null for root, because nobody said anything. */
  readonly user: string | null;
  readonly group: string | null;
}

function wantedOf({ uid, gid, username, imageUser }: ContainerQuestions['user']): Wanted {
  const own = username ?? uid;
  if (own !== undefined) return { source: CRI_SOURCE, user: own, group: gid ?? null };
  if (!imageUser) return { source: IMAGE_SOURCE, user: null, group: null };
  const at = imageUser.indexOf(':');
  if (at < 0) return { source: IMAGE_SOURCE, user: imageUser, group: null };
  return { source: IMAGE_SOURCE, user: imageUser.slice(0, at), group: imageUser.slice(at + 1) || null };
}

function numericId(source: Source, what: string, text: string): number {
  const id = idOf(text);
  if (id === null) throw new FailureError(source.reason, `${what} is ${text}: ids go from 0 to ${LAST_ID}`);
  return id;
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 120));

interface Identity {
  readonly uid: number;
  readonly gid: number;
  /** The name that /etc/group knows the user by. */
  readonly name: string | null;
}

function findUser({ source, user }: Wanted, passwd: readonly PasswdEntry[]): Identity {
  if (user === null) return { uid: 0, gid: 0, name: passwd.find(({ uid }) => uid === 0)?.name ?? null };
  if (isNumber(user)) {
    const uid = numericId(source, source.user, user);
    const entry = passwd.find((candidate) => candidate.uid === uid);
    return { uid, gid: entry?.gid ?? 0, name: entry?.name ?? null };
  }
  const entry = passwd.find(({ name }) => name === user);
  if (entry === undefined) {
    throw new FailureError(
      source.reason,
      `${source.user} is ${quoted(user)}, which ${PASSWD} of the image does not know`,
    );
  }
  return entry;
}

function findGroup({ source, group }: Wanted, groups: readonly GroupEntry[]): number | null {
  if (group === null) return null;
  if (isNumber(group)) return numericId(source, source.group, group);
  const entry = groups.find(({ name }) => name === group);
  if (entry === undefined) {
    throw new FailureError(
      source.reason,
      `${source.group} is ${quoted(group)}, which ${GROUP} of the image does not know`,
    );
  }
  return entry.gid;
}

/**
 * uid and primary gid, and all groups of the process. The primary gid is among the additional ones as well: a process
 * that drops its supplementary groups must not lose a group that a file's permissions deny it by (CVE-2023-25173).
 */
export async function resolveUser(
  questions: ContainerQuestions['user'],
  readFile: ReadFile,
): Promise<ContainerFacts['user']> {
  const textOf = async (path: string): Promise<string> =>
    (await readFile(path, MAX_FILE_BYTES))?.toString('utf8') ?? '';
  const wanted = wantedOf(questions);
  const needsGroups = questions.mergeImageGroups || (wanted.group !== null && !isNumber(wanted.group));
  const [passwd, groups] = await Promise.all([
    textOf(PASSWD).then(parsePasswd),
    needsGroups ? textOf(GROUP).then(parseGroup) : [],
  ]);
  const { uid, gid: ownGid, name } = findUser(wanted, passwd);
  const gid = findGroup(wanted, groups) ?? ownGid;
  const merged =
    questions.mergeImageGroups && name !== null
      ? groups.filter(({ members }) => members.includes(name)).map((group) => group.gid)
      : [];
  const asked = questions.supplementalGroups.map((text) =>
    numericId(CRI_SOURCE, 'linux.security_context.supplemental_groups', text),
  );
  const additionalGids = [...new Set([gid, ...merged, ...asked])];
  if (additionalGids.length > MAX_GROUPS) {
    throw new FailureError(
      'ImageInvalid',
      `${GROUP} of the image puts the user into ${additionalGids.length} groups, and Linux takes ${MAX_GROUPS}: use policy Strict`,
    );
  }
  return { uid, gid, additionalGids };
}
