/** What must be so on a node whose configuration, images, content and pids change under scribe. */
import type { EffectKind, EffectOf } from '../../src/domain/model/effects.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import type { Observation } from '../../src/domain/model/observation.ts';
import { NET_HANDLER } from './changing.ts';
import type { History } from './history.ts';
import { Violation } from './violation.ts';

const fail = (message: string): never => {
  throw new Violation(message);
};

/** A pod is attached to a network that is, or was, the one for pods of its handler. */
export function checkChanging({ world, daemon }: History, effect: EffectOf<EffectKind>): void {
  if (effect.kind !== 'AttachNetwork') return;
  const { podSandboxId, network } = effect;
  const asked = daemon?.engine.state.sandboxes.get(podSandboxId)?.runtimeHandler;
  if (asked === undefined) return;
  const known = world.changing.networks.get(asked === NET_HANDLER.name ? asked : '');
  const name = String(network.confList.name);
  if (known?.has(name) !== true) fail(`Pod ${podSandboxId} of handler "${asked}" is attached to the network ${name}.`);
}

/** A tag names one image, and a container that is asked for by it has that one. */
export function checkImageNames({ images }: Readonly<NodeState>, records: readonly Sequenced[]): void {
  const owners = new Map<string, string>();
  for (const { id, content } of images.values())
    for (const tag of content.repoTags) {
      const other = owners.get(tag);
      if (other !== undefined) fail(`${tag} names ${other} and ${id}.`);
      owners.set(tag, id);
    }
  for (const record of records) {
    if (record.type !== 'container.requested') continue;
    const owner = owners.get(record.body.config.image?.image ?? '');
    if (owner !== undefined && owner !== record.body.imageId && record.body.checkpointArchive === undefined)
      fail(`${record.stream} was asked for with what is ${owner} and has ${record.body.imageId}.`);
  }
}

/** Whoever told of damage and was answered tells nobody else; where it can't be decided about, it is written down so. */
export function checkDamageNoted({ daemon, durable }: History, observation: Observation): void {
  if (observation.kind !== 'ContentDamaged') return;
  const { imageId, damaged } = observation;
  if (daemon?.view.state.images.get(imageId)?.removing !== false) return;
  const isNoted = durable.parsed.some(
    (record) =>
      record?.stream === `image/${imageId}` &&
      (record.type === 'turn.failed' || (record.type === 'content.damaged' && record.body.digest === damaged.digest)),
  );
  if (!isNoted) fail(`The damage of ${damaged.digest} was acknowledged and is not durable.`);
}
