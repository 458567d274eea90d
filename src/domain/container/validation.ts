/**
 * Has what NRI plugins want of a container judged before it is there: by the validator that scribe brings along, then by
 * plugins, which are asked once, all at once, while its files are made. Must not give the creation up itself.
 */
import { awaitsPlugins } from '../deciding/awaited-plugins.ts';
import { askValidators } from '../deciding/hooks.ts';
import type { Turn } from '../deciding/turn.ts';
import type { Failure } from '../model/errors.ts';
import type { ContainerAdjustment } from '../model/nri.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import { containerStream, type Intent } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { Container, NodeState } from '../model/state.ts';
import { NOBODY } from '../nri/claims.ts';
import { pluginsThere } from '../nri/plugins.ts';
import type { MergedUpdates } from '../nri/updates.ts';
import { defaultValidation } from '../nri/validate.ts';
import { seccompProfileAsked } from '../nri/views.ts';
import { isAskedOfPlugins, isBeingValidated } from './hooks.ts';

/** What plugins said to the creation. */
export interface SaidToCreation {
  readonly answers: readonly PluginAnswer[];
  /** What they want of other containers. */
  readonly others: MergedUpdates;
}

export const NOTHING_SAID: SaidToCreation = { answers: [], others: { updates: [], owners: {} } };

/** False: nobody wants to judge it. */
export function askForValidation(turn: Turn, { id }: Container, { answers, others }: SaidToCreation): boolean {
  if (rulesOf(turn.state) < 5) return false;
  const proposal = { ...others, plugins: pluginsThere(turn.state, answers) };
  return askValidators(turn, containerStream(id), proposal);
}

/** What names stand for is looked up once nobody has anything against them, and files are made of that. */
export const isHeldByValidators = (state: NodeState, container: Container): boolean =>
  isBeingValidated(container) && (rulesOf(state) < 6 || hasNames(container));

/** Plugins gave it names of things that have to be looked up before the spec is built. */
export const hasNames = ({ nri }: Container): boolean => {
  const { cdiDevices = [], linux }: ContainerAdjustment = nri?.adjusted?.adjust ?? {};
  return cdiDevices.length > 0 || linux?.resources?.blockioClass !== undefined;
};

/** What scribe's own validator has against it. It looks at what plugins set, and at who is there. */
export function rejectionByDefault(
  state: NodeState,
  container: Container,
  answers: readonly PluginAnswer[],
): Failure | null {
  const { nri } = state.facts ?? {};
  const sandbox = state.sandboxes.get(container.podSandboxId);
  if (nri === undefined || sandbox === undefined) return null;
  const { metadata, annotations } = sandbox.config;
  return defaultValidation(nri.validator, {
    pod: {
      ...(annotations === undefined ? {} : { annotations }),
      name: metadata?.name ?? '',
      namespace: metadata?.namespace ?? '',
    },
    name: nameOf(container),
    seccompProfile: seccompProfileAsked(container),
    owners: container.nri?.adjusted?.owners ?? NOBODY,
    plugins: pluginsThere(state, answers),
    answers,
  });
}

/** Plugins that have to be there for it may still come. */
export const waitsForPlugins = (state: NodeState, container: Container): boolean =>
  !isAskedOfPlugins(container) &&
  awaitsPlugins(state, state.sandboxes.get(container.podSandboxId)?.config.annotations, nameOf(container));

const nameOf = ({ config }: Container): string => config.metadata?.name ?? '';

/** Its files follow the inspection without a trip to the disk in between, where nobody has a say there. */
export const inspectionIntents = (state: NodeState, container: Container): readonly Intent[] => {
  const hasNobodyASay =
    rulesOf(state) >= 8 &&
    container.files === 'none' &&
    (state.nriPlugins ?? []).length === 0 &&
    !waitsForPlugins(state, container) &&
    rejectionByDefault(state, container, []) === null;
  return hasNobodyASay ? [{ kind: 'InspectContainer' }, { kind: 'PrepareContainer' }] : [{ kind: 'InspectContainer' }];
};
