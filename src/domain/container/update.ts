/**
 * Changing a container's limits: one change after the other, each first put in force and then written down, so that
 * limits which the OCI runtime refused are never stored or shown. A change that a restart left half-way is made again
 * (C19).
 *
 *   runs: OCI runtime and spec        CREATED: spec        has ended: written down only
 */
import type { LinuxContainerResources } from '../model/cri.ts';
import { hasTimer, openEffectsOn } from '../deciding/open-effects.ts';
import type { Failure } from '../model/errors.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { checkResources } from '../oci/checks.ts';
import { failureIn } from '../oci/refuse.ts';
import { checkSwap, mergedResources, ociResources } from '../oci/resources.ts';
import { type RequestOf, containerStream, type Intent } from '../model/records.ts';
import type { ContainerUpdate } from '../model/effects/container.ts';
import type { Container, NodeState, OpenCall } from '../model/state.ts';
import {
  afterMs,
  answer,
  callBehind,
  callsWaitingFor,
  complete,
  emit,
  ensureTimer,
  OK,
  type Turn,
  wake,
} from '../deciding/turn.ts';
import { askAboutChange, askPlugins } from '../deciding/hooks.ts';
import type { NriResources } from '../model/nri.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import { rulesOf } from '../model/rules.ts';
import { updatesIn } from '../nri/answers.ts';
import { type Changeable, changeable } from '../nri/beyond-cri.ts';
import { containerNow } from '../nri/of-state.ts';
import { limitsBefore, updatedResources } from '../nri/updates.ts';
import { isAskingShim } from './contact.ts';
import { isSettled } from './evolve.ts';
import { isCreated, mayHaveTask, notFound, resourcesOf, taskAheadOf } from '../model/container-state.ts';
import { refused } from '../model/result.ts';

type UpdateRequest = RequestOf<'UpdateContainerResources'>;

/** The message of the request that holds the limits. */
const FIELD = 'linux';

export function updateContainerResources(turn: Turn, call: OpenCall, { containerId, resources }: UpdateRequest): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || !isCreated(container)) return complete(turn, call, refused(notFound(containerId)));
  const failure = failureIn(() => checkResources(FIELD, resources));
  if (failure !== null) return complete(turn, call, refused(failure));
  if (taskAheadOf(container) !== undefined) wake(turn, containerStream(containerId));
  advanceUpdates(turn, containerId);
}

const RETRY_MS = 5_000;

/** Some limits are being put in force now. */
export const isUpdating = (state: NodeState, containerId: string): boolean =>
  openEffectsOn(state, containerStream(containerId)).some(({ intent }) => isOfUpdate(intent));

/** Plugins are asked about a change before it is put in force. */
const isOfUpdate = (intent: Intent): boolean =>
  intent.kind === 'UpdateContainer' || (intent.kind === 'CallPlugins' && intent.hook === 'UpdateContainer');

/** wait: its start is under way, its shim was not asked yet, or a task that was made ahead is deleted first. */
type Way = 'task' | 'spec' | 'record' | 'wait';

function wayOf(state: NodeState, container: Container): Way {
  const { phase } = container;
  switch (phase.kind) {
    case 'creating':
      return 'spec';
    case 'created':
      return mayHaveTask(container) ? 'wait' : 'spec';
    case 'starting':
      return phase.launch === 'none' ? 'spec' : 'wait';
    case 'running':
      return isAskingShim(state, container) ? 'wait' : 'task';
    case 'startLost':
    case 'dead':
    case 'lost':
    case 'exited':
      return 'record';
  }
}

/** Takes up the change that a restart cut short, then those that calls wait for, in their order. */
export function advanceUpdates(turn: Turn, containerId: string): void {
  for (;;) {
    const container = turn.state.containers.get(containerId);
    if (container === undefined || !isCreated(container)) return;
    const [call] = callsWaiting(turn, containerId);
    if (container.goal !== 'run') {
      if (call === undefined) return;
      complete(turn, call, refused(removedMeanwhile(containerId)));
      continue;
    }
    const way = wayOf(turn.state, container);
    if (way === 'wait' || isUpdating(turn.state, containerId)) return;
    if (container.update !== undefined) {
      if (call === undefined && hasTimer(turn.state, containerStream(containerId), 'retry')) return;
      begin(turn, container, container.update, way, null);
      continue;
    }
    if (call === undefined || call.request.method !== 'UpdateContainerResources') return;
    const wanted = wantedResources(container, call.request, way, rulesOf(turn.state));
    const { failure: fixed, beyond } = beyondOf(turn, container, call.request.beyond);
    const failure = fixed ?? refusal(turn.state.facts, wanted);
    if (failure !== null) complete(turn, call, refused(failure));
    else if (isAskedOf(turn, containerId, wanted, call)) return;
    else begin(turn, container, updateOf(wanted, call.request.annotations, beyond), way, call);
  }
}

/** Plugins are not asked about what one of them wants. */
function isAskedOf(turn: Turn, containerId: string, resources: LinuxContainerResources, call: OpenCall): boolean {
  const { request } = call;
  if (request.method !== 'UpdateContainerResources' || request.plugin !== undefined) return false;
  return askAboutChange(turn, containerStream(containerId), 'UpdateContainer', { resources }, call);
}

/** What plugins said to a change takes its place; where they refuse it, it fails. */
export function afterUpdateHook(turn: Turn, containerId: string, { answers, failure, change }: UpdateAnswers): void {
  const call = callBehind(turn);
  const container = turn.state.containers.get(containerId);
  if (container === undefined || call?.request.method !== 'UpdateContainerResources') return;
  const refuse = (why: Failure): void => complete(turn, call, refused(why));
  if (failure !== null) return refuse(failure);
  if (container.goal !== 'run') return refuse(removedMeanwhile(containerId));
  const updated = updatedResources({ containerId, resources: change }, updatesIn(answers));
  if (!updated.ok) return refuse(updated.failure);
  const { resources: wanted, mayFail } = updated.value;
  const { failure: fixed, beyond } = beyondOf(turn, container, updated.value.beyond);
  const invalid = (mayFail === true ? null : fixed) ?? refusal(turn.state.facts, wanted);
  if (invalid !== null) return refuse(invalid);
  const way = wayOf(turn.state, container);
  // Its start began meanwhile: they are asked again when that is through.
  if (way !== 'wait') begin(turn, container, updateOf(wanted, call.request.annotations, beyond), way, call);
}

/** What plugins want beyond CRI's words, as far as it can be changed. */
function beyondOf({ state }: Turn, container: Container, wanted: NriResources | undefined): Changeable {
  const { facts } = state;
  if (wanted === undefined || facts === null || rulesOf(state) < 4) return { failure: null };
  return changeable(container.id, containerNow(state, facts, container).linux?.resources ?? {}, wanted);
}

interface UpdateAnswers {
  readonly answers: readonly PluginAnswer[];
  readonly failure: Failure | null;
  /** What they were asked about. */
  readonly change: LinuxContainerResources;
}

/** In the order in which they came, without the one whose change is being put in force. */
function callsWaiting(turn: Turn, containerId: string): OpenCall[] {
  const stream = containerStream(containerId);
  const served = openEffectsOn(turn.state, stream).flatMap(({ intent, call }) => (isOfUpdate(intent) ? [call] : []));
  return callsWaitingFor(turn, stream, ['UpdateContainerResources']).filter(({ seq }) => !served.includes(seq));
}

const removedMeanwhile = (containerId: string): Failure => ({
  reason: 'WrongState',
  message: `Container ${containerId} is being removed; its limits can not be changed any more.`,
});

/** A process that was started keeps its oom_score_adj, as its children already have it. */
function wantedResources(
  container: Container,
  { resources, plugin }: UpdateRequest,
  way: Way,
  rules: number,
): LinuxContainerResources {
  const limits = resourcesOf(container) ?? {};
  const current = plugin === undefined && rules < 11 ? limits : limitsBefore(limits, resources);
  const { oomScoreAdj: _kept, ...others } = resources;
  return mergedResources(current, way === 'spec' ? resources : others);
}

function refusal(facts: DaemonFacts | null, wanted: LinuxContainerResources): Failure | null {
  if (facts === null) return { reason: 'NotServing', message: 'The daemon has not finished starting; try again.' };
  return failureIn(() => {
    checkSwap(FIELD, wanted);
    ociResources(wanted, facts.node, FIELD);
  });
}

const updateOf = (
  resources: LinuxContainerResources,
  annotations: ContainerUpdate['annotations'],
  beyond: ContainerUpdate['beyond'],
): ContainerUpdate => ({
  resources,
  ...(annotations === undefined ? {} : { annotations }),
  ...(beyond === undefined ? {} : { beyond }),
});

/** What holds from now on. */
const heldOf = ({ resources, beyond }: ContainerUpdate): ContainerUpdate => updateOf(resources, undefined, beyond);

function begin(
  turn: Turn,
  container: Container,
  update: ContainerUpdate,
  way: Exclude<Way, 'wait'>,
  call: OpenCall | null,
): void {
  const stream = containerStream(container.id);
  if (way !== 'record') {
    const effects = [{ kind: 'UpdateContainer', ...update }] as const;
    return emit(turn, stream, { type: 'effects.requested', body: { effects } }, call?.seq ?? null);
  }
  emit(turn, stream, { type: 'container.updated', body: heldOf(update) });
  if (call !== null) completeUpdate(turn, container.id, call);
}

/** Writes down how a change ended. Of a container that has ended meanwhile, the spec is all there is to change. */
export function recordUpdate(turn: Turn, containerId: string, failure: Failure | undefined, intent: Intent): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || intent.kind !== 'UpdateContainer') return;
  const isDone = failure === undefined || wayOf(turn.state, container) === 'record';
  if (isDone)
    emit(turn, containerStream(containerId), {
      type: 'container.updated',
      body: heldOf(intent),
    });
  const call = callBehind(turn);
  if (call?.request.method === 'UpdateContainerResources') {
    if (isDone) completeUpdate(turn, containerId, call);
    else complete(turn, call, refused(failure));
  }
  if (!isDone && !isSettled(failure)) tryLater(turn, containerId, failure);
}

function completeUpdate(turn: Turn, containerId: string, call: OpenCall): void {
  complete(turn, call, OK);
  if (call.request.method === 'UpdateContainerResources' && call.request.plugin === undefined)
    askPlugins(turn, containerStream(containerId), 'PostUpdateContainer');
}

/** Nobody can say which limits are in force: those that were wanted are put in force once the shim answers again. */
function tryLater(turn: Turn, containerId: string, failure: Failure): void {
  const stream = containerStream(containerId);
  answer(turn, stream, ['UpdateContainerResources'], refused(failure));
  ensureTimer(turn, stream, 'retry', afterMs(turn, RETRY_MS));
}
