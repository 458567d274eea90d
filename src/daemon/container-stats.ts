/**
 * Stats of containers, put together from cgroup files and the sizes of writable layers. Follows which containers run,
 * so that the counting in the background knows what to count while somebody asks; a question is answered from the last count.
 */
import type { CriParts } from '../adapters/cri/parts.ts';
import { containerStats } from '../adapters/cri/stats.ts';
import type { StatsReader, StatsTarget, UsageCollector } from '../adapters/stats/types.ts';
import { containerStateOf } from '../domain/model/container-state.ts';
import { FailureError } from '../domain/model/errors.ts';
import { takesRuncOptions } from '../domain/model/runtime-handler.ts';
import { cgroupsPath } from '../domain/oci/resources.ts';
import { cgroupDriverOf, volumesOf } from '../domain/oci/specs.ts';
import { subjectOf } from '../domain/model/records.ts';
import type { Container } from '../domain/model/state.ts';
import type { ReadModel } from '../engine/ports.ts';

/** A start has better things to do than counting. */
const WATCH_AFTER_MS = 2_000;
/** Of many, so many in a turn of the loop. */
const WATCHED_IN_A_TURN = 20;
const UPPER_DIR = 'upperdir=';

export interface ContainerStatsOptions {
  readonly view: ReadModel;
  readonly reader: StatsReader;
  readonly usage: UsageCollector;
}

export interface ContainerStatsParts extends Pick<CriParts, 'statsOf' | 'statsOfAll'> {
  /** Where its cgroups are; null where that can't be told. */
  readonly targetOf: (container: Container) => StatsTarget | null;
}

const isRunning = (container: Container): boolean => containerStateOf(container) === 'CONTAINER_RUNNING';

/** Tells of those that ran before this start, a while after it; of each as it is then. */
export function runningAtStart(view: ReadModel, tell: (container: Container) => void): void {
  const { containers } = view.state;
  const tellSome = (ids: Iterator<string, undefined>): void => {
    for (let count = 0; count < WATCHED_IN_A_TURN; count += 1) {
      const { value: id, done } = ids.next();
      if (done === true) return;
      const container = containers.get(id);
      if (container !== undefined && isRunning(container)) tell(container);
    }
    setImmediate(tellSome, ids).unref();
  };
  setTimeout(() => tellSome([...containers.keys()].values()), WATCH_AFTER_MS).unref();
}

export function createContainerStats(options: ContainerStatsOptions): ContainerStatsParts {
  const { view, reader, usage } = options;

  const targets = new WeakMap<Container, StatsTarget | null>();

  function targetOf(container: Container): StatsTarget | null {
    const known = targets.get(container);
    if (known !== undefined) return known;
    const target = findTarget(container);
    targets.set(container, target);
    return target;
  }

  /** null where the path can't be told: an older daemon took what is refused today. */
  function findTarget({ id, podSandboxId, nri }: Container): StatsTarget | null {
    const sandbox = view.state.sandboxes.get(podSandboxId);
    if (sandbox === undefined) return null;
    try {
      const ofPlugin = nri?.adjusted?.adjust.linux?.cgroupsPath;
      const own = cgroupsPath(cgroupDriverOf(sandbox.handler), sandbox.config.linux?.cgroupParent, id);
      const asked = takesRuncOptions(sandbox.handler) ? {} : { podSandboxId };
      return { id, cgroupPath: ofPlugin ?? own, ...asked };
    } catch (error) {
      if (error instanceof FailureError) return null;
      throw error;
    }
  }

  function watch(container: Container): void {
    const target = targetOf(container);
    if (target !== null) reader.watch(target);
    const upperDir = upperDirOf(container);
    const { facts } = view.state;
    const volumes = facts === null ? [] : volumesOf(facts, container).map(({ hostPath }) => hostPath);
    if (upperDir !== null) usage.watch(container.id, [upperDir, ...volumes]);
  }

  view.recordsOf('container.started').subscribe(({ stream }) => {
    const container = view.state.containers.get(subjectOf(stream).id);
    if (container !== undefined && isRunning(container)) watch(container);
  });
  view.recordsOf('container.exited', 'container.removed').subscribe(({ stream }) => {
    const { id } = subjectOf(stream);
    reader.forget(id);
    usage.forget(id);
  });
  runningAtStart(view, watch);

  return {
    targetOf,
    async statsOf(container) {
      const target = targetOf(container);
      const [found] = await Promise.all([target === null ? null : reader.read(target), usage.counted()]);
      return found === null ? null : containerStats(container, found, usage.usageOf(container.id));
    },
    async statsOfAll(containers) {
      const targets = containers.flatMap((container) => targetOf(container) ?? []);
      const [found] = await Promise.all([reader.readAll(targets), usage.counted()]);
      return containers.flatMap((container) => {
        const one = found.get(container.id);
        return one === undefined ? [] : [containerStats(container, one, usage.usageOf(container.id))];
      });
    },
  };
}

/** What the container writes goes there; null before its root file system is made. */
function upperDirOf({ rootfs: [mount] }: Container): string | null {
  if (mount === undefined) return null;
  if (mount.type === 'bind') return mount.source;
  const option = mount.options.find((text) => text.startsWith(UPPER_DIR));
  return option === undefined ? null : option.slice(UPPER_DIR.length);
}
