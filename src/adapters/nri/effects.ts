/**
 * Asks NRI plugins, one after the other, and tells one that came what there is. Each later plugin sees what the earlier
 * ones changed; about one object it is asked in the order of the requests; nobody is asked before it is synchronized.
 * Decides nothing: every answer goes back as it is, with its secrets as tokens (C12), and is put together there.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EffectOf, EffectResults } from '../../domain/model/effects.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { NriPlugin, PluginAnswer, PluginFailure, PluginHook } from '../../domain/model/nri-plugins.ts';
import type { NriAnswer, NriContainer } from '../../domain/model/nri-views.ts';
import { type Result, succeeded } from '../../domain/model/result.ts';
import { adjustedView } from '../../domain/nri/adjusted-view.ts';
import { isVeto, mergedAnswers, updatesIn } from '../../domain/nri/answers.ts';
import { pluginName } from '../../domain/nri/plugins.ts';
import { toCriResources } from '../../domain/nri/resources.ts';
import { updatedResources } from '../../domain/nri/updates.ts';
import { bare } from '../../domain/values/sentence.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import type * as wire from '../../wire/nri/api.ts';
import {
  createContainerAnswer,
  stopContainerAnswer,
  synchronizeAnswer,
  updateContainerAnswer,
  validationAnswer,
} from './messages/from-wire.ts';
import { resourcesToWire } from './messages/resources.ts';
import type { TokenOf } from './messages/secrets.ts';
import { adjustmentToWire, containerToWire, ownersToWire, podSandboxToWire, updateToWire } from './messages/to-wire.ts';
import type { AnswerOf, NriFailure, NriPlugins, RequestOf } from './plugins.ts';
import type { ValuesOf } from './secret-values.ts';

interface Options {
  readonly plugins: Pick<NriPlugins, 'ask' | 'synchronize' | 'dismiss'>;
  readonly tokenOf: TokenOf;
  readonly valuesOf: ValuesOf;
  readonly warn: (message: string) => void;
}

type Call = EffectOf<'CallPlugins'>;

export function createNriEffects(options: Options): Pick<PerformEffects, 'CallPlugins' | 'SynchronizePlugin'> {
  const synchronizing = new Map<string, Promise<unknown>>();
  const inOrder = createOrder();
  return {
    CallPlugins: (call) =>
      inOrder(call.container?.id ?? call.pod.id, async () => {
        // Whoever is answered in the same turn is answered before processor time goes into what nobody waits for.
        if (TOLD_AFTERWARDS.has(call.hook)) await nextTurn();
        return { answers: await askAll(options, synchronizing, call) };
      }),
    async SynchronizePlugin(effect) {
      const { id } = effect.plugin;
      const told = synchronize(options, effect);
      synchronizing.set(
        id,
        told.catch(() => undefined),
      );
      try {
        return await told;
      } catch (error) {
        // It is asked no more from now on, and has to know, so as to come again.
        options.plugins.dismiss(id, `it could not be synchronized: ${bare(messageOf(error))}`);
        throw error;
      } finally {
        synchronizing.delete(id);
      }
    },
  };
}

/** What is about one object is done one after the other. */
function createOrder(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const done = before.then(work);
    const settled = done.catch(() => undefined);
    last.set(key, settled);
    try {
      return await done;
    } finally {
      if (last.get(key) === settled) last.delete(key);
    }
  };
}

async function synchronize(
  { plugins, valuesOf, warn }: Options,
  { plugin, pods, containers }: EffectOf<'SynchronizePlugin'>,
): Promise<EffectResults['SynchronizePlugin']> {
  const podsTold = await inSlices(pods, podSandboxToWire);
  const told = await inSlices(containers, (container) => containerOf(container, valuesOf));
  const said = await plugins.synchronize(plugin.id, podsTold, told);
  const name = pluginName(plugin);
  if (!said.ok) throw unsynchronized(name, said);
  const read = synchronizeAnswer(name, said.update);
  if (!read.ok) throw new FailureError(read.failure.reason, read.failure.message);
  const { answer, misfits } = read.value;
  for (const { failure } of misfits) warn(failure.message);
  return { answers: [{ plugin: name, durationNs: String(said.durationNs), answer }] };
}

/** Nothing else in the record of a failure says whose it is: a refusal has the plugin's own words alone. */
const unsynchronized = (plugin: string, { why, message }: NriFailure): FailureError =>
  new FailureError(
    why === 'timedOut' ? 'TimedOut' : 'HostFailed',
    why === 'refused' ? `NRI plugin "${plugin}" refused Synchronize: ${message}` : message,
  );

/** The loop is given back after so many: each is made of an OCI spec. */
const SLICE = 16;

async function inSlices<T, R>(objects: Iterable<T>, make: (object: T) => R | Promise<R>): Promise<readonly R[]> {
  const made: R[] = [];
  for (const object of objects) {
    made.push(await make(object));
    if (made.length % SLICE === 0) await nextTurn();
  }
  return made;
}

async function askAll(
  options: Options,
  synchronizing: ReadonlyMap<string, Promise<unknown>>,
  call: Call,
): Promise<readonly PluginAnswer[]> {
  const ask = async (plugin: NriPlugin, seen: Call): Promise<PluginAnswer | null> => {
    await synchronizing.get(plugin.id);
    return await askOne(options, seen, plugin);
  };
  if (call.hook === 'ValidateContainerAdjustment') {
    const judged = await Promise.all(call.plugins.map((plugin) => ask(plugin, call)));
    return judged.filter((answer) => answer !== null);
  }
  const answers: PluginAnswer[] = [];
  for (const plugin of call.plugins) {
    const answer = await ask(plugin, withAnswersSeen(call, answers));
    if (answer !== null) answers.push(answer);
    // What was begun is given up: those who come later would hear of it in vain.
    if (answer?.failure !== undefined && isVeto(answer.failure) && MAY_BE_REFUSED.has(call.hook)) break;
  }
  return answers;
}

const TOLD_AFTERWARDS: ReadonlySet<PluginHook> = new Set([
  'PostUpdatePodSandbox',
  'PostCreateContainer',
  'PostStartContainer',
  'PostUpdateContainer',
]);

const MAY_BE_REFUSED: ReadonlySet<PluginHook> = new Set([
  'RunPodSandbox',
  'UpdatePodSandbox',
  'CreateContainer',
  'StartContainer',
  'UpdateContainer',
]);

function withAnswersSeen(call: Call, answers: readonly PluginAnswer[]): Call {
  const { container, change, hook } = call;
  if (answers.length === 0 || container === undefined) return call;
  if (hook === 'CreateContainer') {
    const merged = mergedAnswers(answers);
    return merged.ok ? { ...call, container: adjustedView(container, merged.value.adjust) } : call;
  }
  if (hook !== 'UpdateContainer' || change?.resources === undefined) return call;
  const asked = { containerId: container.id, resources: toCriResources(change.resources) };
  const updated = updatedResources(asked, updatesIn(answers));
  return updated.ok ? { ...call, change: { ...change, resources: updated.value.told } } : call;
}

/** null: it was not asked after all. */
async function askOne(options: Options, call: Call, plugin: NriPlugin): Promise<PluginAnswer | null> {
  const name = pluginName(plugin);
  const request = await requestOf(options, call);
  const said = await options.plugins.ask(plugin.id, call.hook, request);
  const common = { plugin: name, durationNs: String(said.durationNs) };
  if (!said.ok) return said.why === 'unsubscribed' ? null : { ...common, failure: failureOf(said, plugin) };
  const read = answerOf(call.hook, name, said.answer, options.tokenOf);
  return read.ok
    ? { ...common, answer: read.value }
    : { ...common, failure: { kind: 'refused', message: read.failure.message } };
}

function failureOf({ why, message }: NriFailure, { isRequired }: NriPlugin): PluginFailure {
  if (why === 'refused') return { kind: 'refused', message };
  return {
    kind: why === 'timedOut' ? 'unanswered' : 'closed',
    message,
    ...(isRequired === true ? { isRequired } : {}),
  };
}

async function requestOf({ valuesOf }: Options, call: Call): Promise<RequestOf<PluginHook>> {
  const { pod, container, change, proposal } = call;
  const told = (resources: NonNullable<typeof change>['resources']) =>
    resources === undefined ? undefined : resourcesToWire(resources);
  // The compiler can't see that each hook takes the parts that its request has.
  return {
    pod: podSandboxToWire(pod),
    ...(container === undefined ? {} : await containerParts(container, proposal, valuesOf)),
    ...(change === undefined
      ? {}
      : { linuxResources: told(change.resources), overheadLinuxResources: told(change.overhead) }),
  };
}

const containerOf = async (container: NriContainer, valuesOf: ValuesOf): Promise<wire.Container> =>
  containerToWire(container, await valuesOf(container));

async function containerParts(container: NriContainer, proposal: Call['proposal'], valuesOf: ValuesOf) {
  const told = { container: await containerOf(container, valuesOf) };
  if (proposal === undefined) return told;
  const { adjust, updates, owners, plugins } = proposal;
  const valueOf = await valuesOf(container);
  return {
    ...told,
    adjust: adjustmentToWire(adjust, valueOf),
    update: updates.map(updateToWire),
    owners: ownersToWire(owners),
    plugins: [...plugins],
  };
}

function answerOf(hook: PluginHook, plugin: string, answer: AnswerOf<PluginHook>, tokenOf: TokenOf): Result<NriAnswer> {
  switch (hook) {
    case 'CreateContainer':
      return createContainerAnswer(plugin, answer as wire.CreateContainerResponse, tokenOf);
    case 'UpdateContainer':
      return updateContainerAnswer(plugin, answer as wire.UpdateContainerResponse);
    case 'StopContainer':
      return stopContainerAnswer(plugin, answer as wire.StopContainerResponse);
    case 'ValidateContainerAdjustment':
      return succeeded(validationAnswer(plugin, answer as wire.ValidateContainerAdjustmentResponse));
    default:
      return succeeded({ hook });
  }
}
