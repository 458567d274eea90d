/** The real spawner, with a note of everything it was asked to run. */
import { startSpawner } from '../../../../src/platform/spawner/client.ts';
import type { RunRequest, Spawner } from '../../../../src/platform/spawner/types.ts';

export interface RecordingSpawner extends Spawner {
  readonly requests: readonly RunRequest[];
}

export const startRecordingSpawner = async (lockPath: string): Promise<RecordingSpawner> => {
  const spawner = await startSpawner({ lockPath, startTimeoutMs: 20_000 });
  const requests: RunRequest[] = [];
  return {
    ...spawner,
    requests,
    run: (request) => {
      requests.push(request);
      return spawner.run(request);
    },
  };
};
