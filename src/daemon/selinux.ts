/** Whether and as what pods are labelled by SELinux in this life of the daemon, and the label of what it brings for them. */
import { readSelinuxPolicy, type Relabel } from '../platform/linux/selinux.ts';
import type { Config } from '../config/config.ts';
import { messageOf } from '../domain/model/errors.ts';
import type { NodeFacts } from '../domain/model/node-facts.ts';
import type { SelinuxContexts } from '../domain/model/selinux.ts';

interface Options {
  readonly config: Pick<Config['runtime'], 'enableSelinux'>;
  readonly node: Pick<NodeFacts, 'selinux'>;
  /** Root file system of the pause tasks of all pods. */
  readonly pauseRootfs: string;
  readonly relabel: Relabel;
  readonly report: (message: string) => void;
  /** Where the policy is, if not where every node has it. */
  readonly policyDir?: string;
}

/** null: pods are not labelled. Never rejects. */
export async function prepareSelinux(options: Options): Promise<SelinuxContexts | null> {
  const { config, node, pauseRootfs, relabel, report, policyDir } = options;
  if (!config.enableSelinux || !node.selinux) return null;
  const { path, ...contexts } = await readSelinuxPolicy(policyDir);
  if (path === null) report(`The SELinux policy has no lxc_contexts: pods are labelled ${contexts.process}.`);
  // Without categories, so that every pod can read it.
  await relabel([pauseRootfs], contexts.file).catch((error: unknown) => report(messageOf(error)));
  return contexts;
}
