/**
 * CRI's RuntimeService: its RPCs by what they are about, and here those about the node and about checkpoints. Each is a
 * call to the engine or a question to the read model. Decides nothing itself.
 */
import { refuseField, shown } from '../../../domain/oci/refuse.ts';
import * as wire from '../../../wire/cri/api.ts';
import { calling, done, everything, reading } from '../calls.ts';
import { following, type Handlers } from '../context.ts';
import { shownObjects } from '../lookup.ts';
import { containerConfig, podSandboxConfig, required } from '../messages/from-wire.ts';
import { sealedContainer, sealedPod } from '../messages/sealed.ts';
import { statusInfo } from '../messages/verbose.ts';
import type { CriParts } from '../parts.ts';
import { statsHandlers } from '../stats-handlers.ts';
import { containerHandlers } from './container-handlers.ts';
import { podSandboxHandlers } from './pod-sandbox-handlers.ts';
import { sessionHandlers } from './session-handlers.ts';

const API_VERSION = '0.1.0';
const RUNTIME_API_VERSION = 'v1';

export function runtimeService(parts: CriParts): Handlers<typeof wire.RuntimeServiceDefinition> {
  const { view } = parts;
  const shownNow = shownObjects(view);

  return {
    version: reading(parts, 'Version', everything, () => ({
      version: API_VERSION,
      runtimeName: 'scribe',
      runtimeVersion: parts.version,
      runtimeApiVersion: RUNTIME_API_VERSION,
    })),

    ...podSandboxHandlers(parts, shownNow),
    ...containerHandlers(parts, shownNow),
    ...sessionHandlers(parts),
    ...statsHandlers(parts, shownNow),

    checkpointContainer: calling(
      parts,
      'CheckpointContainer',
      ({ containerId, location, timeout }) => ({ containerId, location, timeoutSeconds: timeout }),
      done,
    ),
    checkpointPod: calling(
      parts,
      'CheckpointPod',
      ({ podSandboxId, outputPath, containerIds, options }) => {
        refuseOptions(options);
        return { podSandboxId, outputPath, containerIds };
      },
      done,
    ),
    restorePod: calling(
      parts,
      'RestorePod',
      ({ checkpointPath, config, runtimeHandler, options, containerConfigs }) => {
        refuseOptions(options);
        return {
          checkpointPath,
          config: sealedPod(parts.seals, podSandboxConfig(required(config, 'config'))),
          runtimeHandler,
          containerConfigs: containerConfigs.map((one) =>
            sealedContainer(parts.seals, containerConfig(one, parts.tokenOf)),
          ),
        };
      },
      ({ outcome }) => ({
        podSandboxId: outcome.value.id ?? '',
        restoredContainers: Object.entries(outcome.value.containerIds ?? {}).map(([name, containerId]) => ({
          name,
          containerId,
        })),
      }),
    ),
    updateRuntimeConfig: calling(
      parts,
      'UpdateRuntimeConfig',
      ({ runtimeConfig }) => ({ podCidr: runtimeConfig?.networkConfig?.podCidr ?? '' }),
      done,
    ),

    status: reading(parts, 'Status', everything, async ({ verbose }) => {
      const { problem: unread, confList } = view.state.network;
      const problem =
        confList === null ? (unread ?? 'there is no network configuration') : await parts.networkProblem();
      const networkReady = problem === null;
      return {
        status: {
          conditions: [
            { type: 'RuntimeReady', status: true, reason: '', message: '' },
            {
              type: 'NetworkReady',
              status: networkReady,
              reason: networkReady ? '' : 'NetworkPluginNotReady',
              message: problem ?? '',
            },
          ],
        },
        info: verbose ? statusInfo(parts) : {},
        runtimeHandlers: [...parts.runtimeHandlers()],
        features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false, mountOptions: true },
      };
    }),
    runtimeConfig: reading(parts, 'RuntimeConfig', everything, () => ({
      linux: {
        cgroupDriver:
          view.state.facts?.settings.cgroupDriver === 'systemd'
            ? wire.CgroupDriver.SYSTEMD
            : wire.CgroupDriver.CGROUPFS,
      },
    })),
    async getContainerEvents(request, context, send) {
      const subscribe = (): Promise<void> => following(context, (signal) => parts.events.subscribe(send, signal));
      await reading(parts, 'GetContainerEvents', everything, subscribe)(request, context);
    },
  };
}

/** None is known yet. */
function refuseOptions(options: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(options)) refuseField('options', `has ${shown(name)}, which scribe does not know`);
}
