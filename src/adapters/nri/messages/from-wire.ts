/**
 * What plugins answered, from the messages of the wire to the domain's words. Plugins are foreign: what can't be is refused
 * in words that name the plugin and the field as the protocol does, and nothing is thrown. Env values, arguments and the
 * env of hooks become tokens on the way, before anybody records them (C12).
 */
import type { Failure } from '../../../domain/model/errors.ts';
import type { ContainerAdjustment, LinuxContainerAdjustment } from '../../../domain/model/nri.ts';
import type { NriAnswer, NriEviction, NriRequests, NriUpdate } from '../../../domain/model/nri-views.ts';
import { refused, type Result } from '../../../domain/model/result.ts';
import { resultOf } from '../../../domain/oci/refuse.ts';
import type * as wire from '../../../wire/nri/api.ts';
import {
  deviceFromWire,
  envFromWire,
  hooksFromWire,
  ioPriorityFromWire,
  memoryPolicyFromWire,
  mountFromWire,
  namespaceFromWire,
  rdtFromWire,
  rlimitFromWire,
  schedulerFromWire,
  seccompFromWire,
} from './parts-from-wire.ts';
import { list, map, message, optionalText, ownWords, present, refuseAnswer, text, wholeNumber } from './reading.ts';
import { resourcesFromWire } from './resources.ts';
import { secretArg, type TokenOf } from './secrets.ts';

/** More containers than a node has. */
const UPDATES_MAX = 10_000;

type AnswerTo<H extends NriAnswer['hook']> = Extract<NriAnswer, { readonly hook: H }>;

/** In a failure, what was read is named with who said it. `plugin` is "NN-name"; `what` goes on from "sent". */
function reading<T>(plugin: string, what: string, read: () => T): Result<T> {
  const result = resultOf(read);
  if (result.ok) return result;
  const { reason, message: problem } = result.failure;
  return refused({ reason, message: `NRI plugin "${plugin}" sent ${what} with ${problem}.` });
}

export const createContainerAnswer = (
  plugin: string,
  { adjust, update, evict }: wire.CreateContainerResponse,
  tokenOf: TokenOf,
): Result<AnswerTo<'CreateContainer'>> =>
  reading(plugin, 'an answer to CreateContainer', () => ({
    hook: 'CreateContainer',
    ...present<Pick<AnswerTo<'CreateContainer'>, 'adjust'>>({
      adjust: message(adjust, (some) => adjustment('adjust', some, tokenOf)),
    }),
    ...requests(update, evict),
  }));

export const updateContainerAnswer = (
  plugin: string,
  { update, evict }: wire.UpdateContainerResponse,
): Result<AnswerTo<'UpdateContainer'>> =>
  reading(plugin, 'an answer to UpdateContainer', () => ({ hook: 'UpdateContainer', ...requests(update, evict) }));

export const stopContainerAnswer = (
  plugin: string,
  { update }: wire.StopContainerResponse,
): Result<AnswerTo<'StopContainer' | 'Synchronize'>> =>
  reading(plugin, 'an answer to StopContainer', () => ({ hook: 'StopContainer', ...requests(update, []) }));

/** An update that can't be, with why: the others are none the worse for it. */
export interface MisfitUpdate {
  readonly update: wire.ContainerUpdate;
  readonly failure: Failure;
}

export interface SynchronizeSaid {
  readonly answer: AnswerTo<'StopContainer' | 'Synchronize'>;
  readonly misfits: readonly MisfitUpdate[];
}

/** `update`: of all the chunks that were sent. Refused with PluginInvalid where there are too many. */
export function synchronizeAnswer(plugin: string, update: readonly wire.ContainerUpdate[]): Result<SynchronizeSaid> {
  const what = 'an answer to Synchronize';
  return reading(plugin, what, () => {
    const { updates, misfits } = eachUpdate(plugin, what, list('update', update, (_, one) => one, UPDATES_MAX) ?? []);
    return { answer: { hook: 'Synchronize', ...(updates.length === 0 ? {} : { updates }) }, misfits };
  });
}

export const validationAnswer = (
  plugin: string,
  { reject, reason }: wire.ValidateContainerAdjustmentResponse,
): AnswerTo<'ValidateContainerAdjustment'> => ({
  hook: 'ValidateContainerAdjustment',
  ...(reject ? { rejected: { reason: ownWords(reason) || `plugin "${plugin}" gave no reason` } } : {}),
});

export interface UpdatesAsked {
  readonly updates: readonly NriUpdate[];
  readonly evictions: readonly NriEviction[];
  readonly misfits: readonly MisfitUpdate[];
}

/** What a plugin wants without having been asked. Refused with PluginInvalid where an eviction can't be. */
export function updateContainersRequest(
  plugin: string,
  { update, evict }: Pick<wire.UpdateContainersRequest, 'update' | 'evict'>,
): Result<UpdatesAsked> {
  const what = 'a request for UpdateContainers';
  return reading(plugin, what, () => ({
    ...eachUpdate(plugin, what, update),
    evictions: requests([], evict)?.evictions ?? [],
  }));
}

function eachUpdate(
  plugin: string,
  what: string,
  update: readonly wire.ContainerUpdate[],
): Pick<UpdatesAsked, 'updates' | 'misfits'> {
  const [updates, misfits]: [NriUpdate[], MisfitUpdate[]] = [[], []];
  for (const [index, one] of update.entries()) {
    const read = reading(plugin, what, () => updateFromWire(`update[${index}]`, one));
    if (read.ok) updates.push(read.value);
    else misfits.push({ update: one, failure: read.failure });
  }
  return { updates, misfits };
}

const requests = (
  update: readonly wire.ContainerUpdate[],
  evict: readonly wire.ContainerEviction[],
): NriRequests | undefined =>
  present<NriRequests>({
    updates: list('update', update, updateFromWire, UPDATES_MAX),
    evictions: list('evict', evict, evictionFromWire, UPDATES_MAX),
  });

function containerId(at: string, id: string): string {
  return id === '' ? refuseAnswer(at, 'is empty: it is required') : text(at, id);
}

const updateFromWire = (at: string, update: wire.ContainerUpdate): NriUpdate => ({
  containerId: containerId(`${at}.container_id`, update.containerId),
  ...present<Omit<NriUpdate, 'containerId'>>({
    resources: message(update.linux?.resources, (some) => resourcesFromWire(`${at}.linux.resources`, some)),
    ignoreFailure: update.ignoreFailure || undefined,
  }),
});

const evictionFromWire = (at: string, eviction: wire.ContainerEviction): NriEviction => ({
  containerId: containerId(`${at}.container_id`, eviction.containerId),
  reason: ownWords(eviction.reason),
});

const plainText = (field: string, value: string): string => text(field, value);

/** Absent when it changes nothing. */
const adjustment = (at: string, adjust: wire.ContainerAdjustment, tokenOf: TokenOf): ContainerAdjustment | undefined =>
  present<ContainerAdjustment>({
    annotations: map(`${at}.annotations`, adjust.annotations, plainText),
    mounts: list(`${at}.mounts`, adjust.mounts, mountFromWire),
    env: list(`${at}.env`, adjust.env, (field, entry) => envFromWire(field, entry, tokenOf)),
    hooks: message(adjust.hooks, (hooks) => hooksFromWire(`${at}.hooks`, hooks, tokenOf)),
    linux: message(adjust.linux, (linux) => linuxAdjustment(`${at}.linux`, linux)),
    rlimits: list(`${at}.rlimits`, adjust.rlimits, rlimitFromWire),
    cdiDevices: list(`${at}.CDI_devices`, adjust.CDIDevices, (field, { name }) => text(`${field}.name`, name)),
    args: list(`${at}.args`, adjust.args, (field, arg) => secretArg(text(field, arg), tokenOf)),
  });

const MAX_OOM_SCORE_ADJ = 1_000n;

const linuxAdjustment = (at: string, linux: wire.LinuxContainerAdjustment): LinuxContainerAdjustment | undefined =>
  present<LinuxContainerAdjustment>({
    devices: list(`${at}.devices`, linux.devices, deviceFromWire),
    resources: message(linux.resources, (resources) => resourcesFromWire(`${at}.resources`, resources)),
    cgroupsPath: optionalText(`${at}.cgroups_path`, linux.cgroupsPath),
    oomScoreAdj: message(linux.oomScoreAdj, ({ value }) =>
      wholeNumber(`${at}.oom_score_adj`, value, -MAX_OOM_SCORE_ADJ, MAX_OOM_SCORE_ADJ),
    ),
    ioPriority: message(linux.ioPriority, (priority) => ioPriorityFromWire(`${at}.io_priority`, priority)),
    seccompPolicy: message(linux.seccompPolicy, (policy) => seccompFromWire(`${at}.seccomp_policy`, policy)),
    namespaces: list(`${at}.namespaces`, linux.namespaces, namespaceFromWire),
    sysctl: map(`${at}.sysctl`, linux.sysctl, plainText),
    netDevices: map(`${at}.net_devices`, linux.netDevices, (field, { name }) => ({
      name: text(`${field}.name`, name),
    })),
    scheduler: message(linux.scheduler, (scheduler) => schedulerFromWire(`${at}.scheduler`, scheduler)),
    rdt: message(linux.rdt, (rdt) => rdtFromWire(`${at}.rdt`, rdt)),
    memoryPolicy: message(linux.memoryPolicy, (policy) => memoryPolicyFromWire(`${at}.memory_policy`, policy)),
  });
