/**
 * Performs InspectContainer: answers what a container's OCI spec depends on, in the image and on the host. Reads only,
 * but for mount sources that are missing, which it makes. Decides nothing: what an answer leads to is the domain's.
 */
import type { ApparmorFact, ContainerFacts, ContainerQuestions } from '../../domain/model/container-facts.ts';
import type { Perform } from '../../engine/ports.ts';
import type { InspectBlockIOClass } from './blockio-classes.ts';
import type { InspectCdiDevices } from './cdi-devices.ts';
import { withDeadline } from './deadline.ts';
import { inspectAllDevices, inspectDevices } from './devices.ts';
import { findImageDirectory, type LayerDirs } from './image-directories.ts';
import type { ReadImageFile } from './image-files.ts';
import { createKnownUsers } from './known-users.ts';
import { inspectMountSource, readMountTable } from './mount-sources.ts';
import { readSeccompProfile } from './seccomp-file.ts';

export interface InspectDependencies {
  readonly readImageFile: ReadImageFile;
  readonly layerDirs: LayerDirs;
  readonly inspectCdiDevices: InspectCdiDevices;
  readonly inspectBlockIOClass: InspectBlockIOClass;
  readonly inspectApparmorProfile: (name: string) => Promise<ApparmorFact>;
  /** How long one path of the host may take to answer. */
  readonly hostTimeoutMs?: number;
}

const HOST_TIMEOUT_MS = 60_000;

/** One reading of the mount table for all paths of a call, and none when there are no paths. */
const once = <T>(read: () => Promise<T>): (() => Promise<T>) => {
  let reading: Promise<T> | undefined;
  return () => {
    reading ??= read();
    return reading;
  };
};

export function createInspectContainer(dependencies: InspectDependencies): Perform<'InspectContainer'> {
  const {
    readImageFile,
    layerDirs,
    inspectCdiDevices,
    inspectBlockIOClass,
    inspectApparmorProfile,
    hostTimeoutMs = HOST_TIMEOUT_MS,
  } = dependencies;
  const resolveUserOf = createKnownUsers({ readImageFile, layerDirs });

  async function answer(questions: ContainerQuestions, signal: AbortSignal): Promise<ContainerFacts> {
    const ask = <T>(path: string, work: Promise<T>): Promise<T> => withDeadline(path, hostTimeoutMs, signal, work);
    const table = once(readMountTable);
    const { chainIds, imageSubPaths, cdiDevices, blockIOClass, seccompProfilePath, apparmorProfile } = questions;
    const [user, devices, allDevices, mounts, directories, cdi, blockIO, seccompProfile, apparmor] = await Promise.all([
      ask('the image', resolveUserOf(chainIds, questions.user)),
      Promise.all(questions.devicePaths.map((path) => ask(path, inspectDevices(path)))),
      questions.allDevices ? ask('/dev', inspectAllDevices()) : [],
      Promise.all(questions.mountPaths.map((path) => ask(path, inspectMountSource(path, table)))),
      imageSubPaths && Promise.all(imageSubPaths.map((path) => ask(path.image, findImageDirectory(layerDirs, path)))),
      cdiDevices && ask('the CDI devices', inspectCdiDevices(cdiDevices)),
      blockIOClass === undefined ? undefined : ask('the block I/O class', inspectBlockIOClass(blockIOClass)),
      seccompProfilePath === undefined ? undefined : ask(seccompProfilePath, readSeccompProfile(seccompProfilePath)),
      apparmorProfile === undefined ? undefined : ask('AppArmor', inspectApparmorProfile(apparmorProfile)),
    ]);
    return {
      user,
      devices: [...allDevices, ...devices.flat()],
      mounts,
      ...(directories === undefined ? {} : { imageSubPaths: directories }),
      ...(cdi === undefined ? {} : { cdi }),
      ...(blockIO ? { blockIO } : {}),
      ...(seccompProfilePath === undefined ? {} : { seccompProfile }),
      ...(apparmor && { apparmor }),
    };
  }

  return async ({ questions }, { signal }) => ({ facts: await answer(questions, signal) });
}
