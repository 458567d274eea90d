/**
 * Network namespaces of a test's own: what runs in one reaches nothing but what else is in it. Removed when their
 * owner ends.
 */
import { randomBytes } from 'node:crypto';
import { type Owner, onCleanup } from './cleanup.ts';
import { runOk } from './process.ts';

export interface Netns {
  readonly name: string;
  /** Where the namespace is pinned. */
  readonly path: string;
  /** The argv that runs `argv` inside. (Not "ip netns exec": that mounts a new /sys, which hides the cgroups.) */
  readonly inside: (argv: readonly string[]) => string[];
}

/** Fails with the remedy unless the test runs as root: namespaces, mounts and cgroups are root's. */
export const requireRoot = (): void => {
  if (process.getuid?.() !== 0) throw new Error('this test makes namespaces, mounts and cgroups: run it as root');
};

/** Makes a network namespace with its loopback up. */
export const netnsOf = async (owner: Owner): Promise<Netns> => {
  requireRoot();
  const name = `scribe-test-${randomBytes(4).toString('hex')}`;
  await runOk(['ip', 'netns', 'add', name]);
  onCleanup(owner, async () => void (await runOk(['ip', 'netns', 'delete', name])));
  await runOk(['ip', '-n', name, 'link', 'set', 'lo', 'up']);
  const path = `/run/netns/${name}`;
  return { name, path, inside: (argv) => ['nsenter', `--net=${path}`, '--', ...argv] };
};

const FETCH = `const [url, method] = process.argv.slice(1);
const answer = await fetch(url, { method });
console.log(JSON.stringify({ status: answer.status, text: await answer.text() }));`;

/** Asks an HTTP server inside of the namespace; believes any certificate, since no test's is signed by anybody. */
export const fetchInside = async (
  netns: Netns,
  url: string,
  method = 'GET',
): Promise<{ readonly status: number; readonly text: string }> => {
  const argv = netns.inside([process.execPath, '--no-warnings', '--input-type=module', '-e', FETCH, url, method]);
  const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  return JSON.parse(await runOk(argv, { env })) as { status: number; text: string };
};
