/**
 * The RPCs on pod sandboxes: each as a call to the engine or a question to the read model. Decides nothing itself.
 */
import { isExitPending } from '../../../domain/model/container-state.ts';
import type * as wire from '../../../wire/cri/api.ts';
import { calling, done, reading } from '../calls.ts';
import type { Handlers } from '../context.ts';
import { whenExitsAreKnown } from '../exits.ts';
import { containersIn, containerStatuses, podSandboxStatus } from '../messages/entries.ts';
import { linuxContainerResources, podSandboxConfig, required } from '../messages/from-wire.ts';
import { sealedFilter, sealedPod } from '../messages/sealed.ts';
import { hasOwnSandbox, infoWhen, podSandboxInfo } from '../messages/verbose.ts';
import type { CriParts } from '../parts.ts';
import type { ShownObjects } from '../lookup.ts';
import { streamedList } from '../streamed-lists.ts';

type PodSandboxMethods =
  | 'runPodSandbox'
  | 'stopPodSandbox'
  | 'removePodSandbox'
  | 'podSandboxStatus'
  | 'listPodSandbox'
  | 'streamPodSandboxes'
  | 'updatePodSandboxResources';

export function podSandboxHandlers(
  parts: CriParts,
  { sandbox }: Pick<ShownObjects, 'sandbox'>,
): Pick<Handlers<typeof wire.RuntimeServiceDefinition>, PodSandboxMethods> {
  const { view, lists } = parts;

  return {
    runPodSandbox: calling(
      parts,
      'RunPodSandbox',
      ({ config, runtimeHandler }) => ({
        config: sealedPod(parts.seals, podSandboxConfig(required(config, 'config'))),
        runtimeHandler,
      }),
      ({ outcome }) => ({ podSandboxId: outcome.value.id ?? '' }),
    ),
    stopPodSandbox: calling(parts, 'StopPodSandbox', ({ podSandboxId }) => ({ podSandboxId }), done),
    removePodSandbox: calling(parts, 'RemovePodSandbox', ({ podSandboxId }) => ({ podSandboxId }), done),
    podSandboxStatus: reading(
      parts,
      'PodSandboxStatus',
      ({ podSandboxId }) => podSandboxId,
      ({ podSandboxId, verbose }) => {
        const { id } = sandbox(podSandboxId);
        const isKnown = (): boolean => !containersIn(view.state, id).some(isExitPending);
        const answer = (details: Readonly<Record<string, unknown>> = {}): wire.PodSandboxStatusResponse => {
          const found = sandbox(id);
          return {
            status: podSandboxStatus(found),
            info: infoWhen(verbose, () => ({ ...podSandboxInfo(view.state, found), ...details })),
            containersStatuses: containerStatuses(view.state, containersIn(view.state, id)),
            timestamp: String(parts.statusesAtNs()),
          };
        };
        const whole = (): wire.PodSandboxStatusResponse | Promise<wire.PodSandboxStatusResponse> =>
          verbose && hasOwnSandbox(sandbox(id))
            ? parts.sandboxDetails(id).then((shimSandbox) => answer({ shimSandbox }))
            : answer();
        return isKnown() ? whole() : whenExitsAreKnown(view, isKnown, `a container of pod ${id}`).then(whole);
      },
    ),
    listPodSandbox: reading(
      parts,
      'ListPodSandbox',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.podSandboxes(sealedFilter(parts.seals, filter)),
    ),
    streamPodSandboxes: streamedList(
      parts,
      'StreamPodSandboxes',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.podSandboxes(sealedFilter(parts.seals, filter)),
    ),
    updatePodSandboxResources: calling(
      parts,
      'UpdatePodSandboxResources',
      ({ podSandboxId, overhead, resources }) => ({
        podSandboxId,
        ...(overhead === undefined ? {} : { overhead: linuxContainerResources(overhead) }),
        ...(resources === undefined ? {} : { resources: linuxContainerResources(resources) }),
      }),
      done,
    ),
  };
}
