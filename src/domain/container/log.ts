/** Where a container's log is: its own path beneath its pod's directory. Must not know who writes it. */
import type { Container, PodSandbox } from '../model/state.ts';
import type { ContainerLog } from '../model/tasks.ts';

/** Absolute path of the container's log; null when kubelet asked for none. */
export function logPath(sandbox: PodSandbox, container: Container): string | null {
  const { logDirectory } = sandbox.config;
  return logDirectory && container.config.logPath ? `${logDirectory}/${container.config.logPath}` : null;
}

export function containerLog(sandbox: PodSandbox, container: Container): ContainerLog {
  const path = logPath(sandbox, container);
  const { logDirectory } = sandbox.config;
  return path === null || logDirectory === undefined ? { path } : { path, directory: logDirectory };
}
