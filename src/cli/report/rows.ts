/**
 * What reports are made of, read from the views that docs/sql.md describes: containers and pods as things, restarts, and
 * calls one by one. Must not choose or count. Holds what is known of each pod and container, and no call.
 */
import type { Cell, Queries } from '../../journal/queries.ts';
import type { ImageSpec } from '../../domain/model/cri.ts';
import {
  type ContainerThing,
  imagesAskedFor,
  type ImagesOfMaking,
  type Labels,
  type PodThing,
  usedImages,
} from '../things.ts';
import type { Seqs } from '../time-argument.ts';

export interface CallRow {
  readonly seq: number;
  readonly atNs: bigint;
  /** As CRI names it; of a call that was refused or is not offered, the RPC. */
  readonly method: string;
  /** How its request was recorded: Refused and Unimplemented, where it did not come to a method. */
  readonly recordedAs: string;
  /** gRPC code; null: no answer yet. */
  readonly code: number | null;
  readonly failure: string | null;
  readonly durationMs: number | null;
  readonly callerUid: number | null;
  readonly caller: string | null;
  readonly containerId: string | null;
  /** Of the call's own words, where the pod or container was never made. */
  readonly containerName: string | null;
  readonly labels: Labels;
  readonly podId: string | null;
  readonly namespace: string | null;
  readonly pod: string | null;
  readonly image: string | null;
  /** How it called the images of the containers that it was to make; none where nothing is chosen. */
  readonly askedImages: readonly string[];
  /** Those that a pod was to be restored with, which may never have come to be; none where nothing is chosen. */
  readonly askedContainers: readonly Omit<ContainerThing, 'pod'>[];
  /** Images that its answer names. */
  readonly imageIds: readonly string[];
  /** Streams of what was recorded on its behalf; none where nothing is chosen. */
  readonly streams: readonly string[];
  readonly sizeBytes: number | null;
  /** The first word of a command: those after it may hold what nobody should read in a report. */
  readonly program: string | null;
  readonly exitCode: number | null;
}

/** A container that was made in place of one that had ended. */
export interface Restart {
  readonly seq: number;
  readonly atNs: bigint;
  readonly container: ContainerThing;
  /** How the one before it ended, as CRI says; null: that is pruned, or it never started. */
  readonly reason: string | null;
  readonly exitStatus: number | null;
}

interface Making {
  readonly seq: number;
  readonly atNs: bigint;
  readonly attempt: number;
  /** What those have in common of which each was made in place of the one before. */
  readonly slot: string;
  readonly container: ContainerThing;
}

export interface Things {
  readonly pods: ReadonlyMap<string, PodThing>;
  readonly containers: ReadonlyMap<string, ContainerThing>;
  /** Tags and digests of images, by their ids; empty where nobody asks for an image. */
  readonly imageNames: ReadonlyMap<string, readonly string[]>;
  /** Of the containers, in order. */
  readonly makings: readonly Making[];
}

const numberOf = (cell: Cell | undefined): number | null =>
  typeof cell === 'bigint' || typeof cell === 'number' ? Number(cell) : null;
const textOf = (cell: Cell | undefined): string | null => (typeof cell === 'string' ? cell : null);
const nsOf = (cell: Cell | undefined): bigint => (typeof cell === 'bigint' ? cell : 0n);
const labelsOf = (cell: Cell | undefined): Labels => JSON.parse(textOf(cell) ?? '{}') as Labels;

interface KnownPods {
  readonly pods: Map<string, PodThing>;
  /** By id: a pod that lost its sandbox, as by a reboot, gets another, which is the same pod to who asked for it. */
  readonly uids: ReadonlyMap<string, string>;
}

const readPods = (queries: Queries): KnownPods => {
  const pods = new Map<string, PodThing>();
  const uids = new Map<string, string>();
  for (const [id, name, namespace, labels, uid] of queries.ask('SELECT id, name, namespace, labels, uid FROM pods')
    .rows) {
    const pod = { name: textOf(name) ?? '', namespace: textOf(namespace) ?? '', labels: labelsOf(labels) };
    pods.set(textOf(id) ?? '', { kind: 'pod', id: textOf(id) ?? '', ...pod });
    uids.set(textOf(id) ?? '', textOf(uid) ?? '');
  }
  return { pods, uids };
};

/** Nothing of how they ended, for which SQLite looks through all that each has lived through. */
const CONTAINERS = `
  SELECT seq, at, id, name, attempt, pod_id, labels, image, image_id,
    (SELECT body ->> '$.config.image.image' FROM records WHERE records.seq = containers.seq),
    (SELECT body ->> '$.mountedImages' FROM records WHERE records.seq = containers.seq)
  FROM containers ORDER BY seq`;

/** Every pod and container that the journal still knows. */
export const readThings = (queries: Queries, imageNames: Things['imageNames']): Things => {
  const { pods, uids } = readPods(queries);
  const containers = new Map<string, ContainerThing>();
  const makings: Making[] = [];
  for (const row of queries.ask(CONTAINERS).rows) {
    const [seq, at, id, name, attempt, podId, labels, image, imageId, given, mounted] = row;
    const container: ContainerThing = {
      kind: 'container',
      id: textOf(id) ?? '',
      name: textOf(name) ?? '',
      labels: labelsOf(labels),
      pod: pods.get(textOf(podId) ?? '') ?? null,
      images: usedImages(
        {
          imageId: textOf(imageId) ?? '',
          image: { image: textOf(given) ?? '', userSpecifiedImage: textOf(image) ?? '' },
          mountedImages: JSON.parse(textOf(mounted) ?? '[]') as ImagesOfMaking['mountedImages'],
        },
        (id) => imageNames.get(id) ?? [],
      ),
    };
    containers.set(container.id, container);
    const slot = `${uids.get(textOf(podId) ?? '') || textOf(podId)}/${container.name}`;
    makings.push({ seq: numberOf(seq) ?? 0, atNs: nsOf(at), attempt: numberOf(attempt) ?? 0, slot, container });
  }
  return { pods, containers, imageNames, makings };
};

interface End extends Pick<Restart, 'reason' | 'exitStatus'> {
  readonly cameToBe: boolean;
}

/** How the containers with these makings ended. */
const readEnds = (queries: Queries, seqs: readonly number[]): ReadonlyMap<number, End> => {
  const question =
    'SELECT seq, reason, exit_status, failure FROM containers WHERE seq IN (SELECT value FROM json_each(?))';
  const ends = new Map<number, End>();
  for (const [seq, reason, exitStatus, failure] of queries.ask(question, [JSON.stringify(seqs)]).rows)
    ends.set(numberOf(seq) ?? 0, {
      reason: textOf(reason),
      exitStatus: numberOf(exitStatus),
      cameToBe: textOf(failure) === null,
    });
  return ends;
};

const UNKNOWN_END: End = { reason: null, exitStatus: null, cameToBe: true };

/**
 * A restart is a container with an attempt above 0 that came to be; its reason is the end of the one that bore its name in the
 * pod before it, whichever sandbox that had.
 */
export const readRestarts = (
  queries: Queries,
  { makings }: Pick<Things, 'makings'>,
  range: Seqs,
): readonly Restart[] => {
  const isRestart = ({ seq, attempt }: Making): boolean => attempt > 0 && seq >= range.fromSeq && seq <= range.toSeq;
  const slots = new Set(makings.filter(isRestart).map(({ slot }) => slot));
  const asked = makings.filter(({ slot }) => slots.has(slot));
  const ends = readEnds(
    queries,
    asked.map(({ seq }) => seq),
  );
  const restarts: Restart[] = [];
  const newest = new Map<string, End>();
  for (const making of asked) {
    const { seq, atNs, slot, container } = making;
    const end = ends.get(seq) ?? UNKNOWN_END;
    if (!end.cameToBe) continue;
    const { reason, exitStatus } = newest.get(slot) ?? UNKNOWN_END;
    if (isRestart(making)) restarts.push({ seq, atNs, container, reason, exitStatus });
    newest.set(slot, end);
  }
  return restarts;
};

/**
 * What a container's record tells is not asked of every call again; nor is what few methods have. No text that a client
 * chose takes more memory than names need. The limit is none: with it SQLite reckons each column of the view once, and
 * without it wherever it is named.
 */
const callsSql = (where: string, isToChoose: boolean): string => `
  SELECT seq, at, CASE method WHEN 'Read' THEN ${ofReceived("body ->> '$.request.rpc'")} ELSE method END, code, failure, duration_ms, caller_uid,
    ${CALLER}, container_id, image, own,
    CASE method WHEN 'CreateContainer' THEN ${ofReceived("body ->> '$.request.config.metadata.name'")} END,
    CASE WHEN code <> 0 THEN ${ofReceived("body ->> '$.request.method'")} END,
    CASE WHEN code <> 0 THEN ${ofReceived("body -> '$.request.config.labels'")} END,
    CASE WHEN method IN ('ExecSync', 'ExecSession') THEN ${ofReceived("substr(body ->> '$.request.cmd[0]', 1, 1024)")} END,
    CASE WHEN method IN ('ExecSync', 'ExecSession') THEN ${ofCompleted("body ->> '$.response.exitCode'")} END,
    CASE WHEN method IN ('PullImage', 'LoadImages') THEN ${ofCompleted("body -> '$.response.imageRefs'")} END,
    ${isToChoose ? STREAMS_OF_CALL : 'NULL'},
    ${isToChoose ? ASKED_IMAGES : 'NULL'},
    ${isToChoose ? ASKED_CONTAINERS : 'NULL'},
    CASE method WHEN 'PullImage' THEN (SELECT size_bytes FROM image_pulls WHERE image_pulls.seq = call.seq) END
  FROM (
    SELECT seq, at, method, code, failure, duration_ms, caller_uid, caller, container_id, substr(image, 1, 1024) AS image, ended_seq,
      CASE WHEN container_id IS NULL OR method = 'CreateContainer' THEN json_array(pod_id, namespace, pod) END AS own
    FROM calls WHERE ${where} ORDER BY seq LIMIT -1
  ) call`;

/** By the index on calls; what is done on its behalf after it has ended stands by itself, as in a history. */
const STREAMS_OF_CALL = `(
      SELECT json_group_array(name) FROM names
      WHERE id IN (SELECT stream FROM records r WHERE r.call = call.seq AND typeof(r.stream) = 'integer' AND r.seq <= coalesce(call.ended_seq, r.seq))
    )`;

const ofReceived = (value: string): string => `(SELECT ${value} FROM records WHERE records.seq = call.seq)`;
const ofCompleted = (value: string): string => `(SELECT ${value} FROM records WHERE records.seq = call.ended_seq)`;

/** NRI plugins ask through scribe: no client is there, and the request names them. */
const CALLER = `CASE WHEN caller IS NULL AND method IN ('UpdateContainerResources', 'StopContainer')
      THEN 'NRI plugin ' || ${ofReceived("coalesce(body ->> '$.request.plugin', body ->> '$.request.evicted.plugin')")}
      ELSE caller END`;

/** Of requests, as ImageSpec. */
const ASKED_IMAGES = `CASE method
      WHEN 'CreateContainer' THEN ${ofReceived("json_array(body -> '$.request.config.image')")}
      WHEN 'RestorePod' THEN ${ofReceived("(SELECT json_group_array(value -> '$.image') FROM json_each(body, '$.request.containerConfigs'))")}
    END`;

/** Of requests, as the id, the name, the labels and the ImageSpec of each. */
const ASKED_CONTAINERS = `CASE method
      WHEN 'RestorePod' THEN ${ofReceived("(SELECT json_group_array(json_array(body ->> ('$.request.newContainerIds[' || key || ']'), value ->> '$.metadata.name', value -> '$.labels', value -> '$.image')) FROM json_each(body, '$.request.containerConfigs'))")}
    END`;

const textsOf = (cell: Cell | undefined): readonly string[] => JSON.parse(textOf(cell) ?? '[]') as string[];

const specsOf = (cell: Cell | undefined): readonly (ImageSpec | null)[] =>
  JSON.parse(textOf(cell) ?? '[]') as (ImageSpec | null)[];

const containersOf = (cell: Cell | undefined): CallRow['askedContainers'] => {
  type Asked = readonly [id: string | null, name: string | null, labels: Labels | null, image: ImageSpec | null];
  const asked = JSON.parse(textOf(cell) ?? '[]') as readonly Asked[];
  return asked.map(([id, name, labels, image]) => {
    const images = { ids: [], references: imagesAskedFor(image ?? {}) };
    return { kind: 'container', id: id ?? '', name: name ?? '', labels: labels ?? {}, images };
  });
};

const podOf = (own: Cell | undefined): readonly (string | null)[] =>
  typeof own === 'string' ? (JSON.parse(own) as (string | null)[]) : [];

const callOf = (row: readonly Cell[]): CallRow => {
  const [seq, at, method, code, failure, durationMs, callerUid, caller, containerId, image, ...rest] = row;
  const [own, containerName, recordedAs, labels, program, exitCode, imageIds, streams, asked, restored, sizeBytes] =
    rest;
  const [podId = null, namespace = null, pod = null] = podOf(own);
  return {
    seq: numberOf(seq) ?? 0,
    atNs: nsOf(at),
    method: textOf(method) ?? '?',
    recordedAs: textOf(recordedAs) ?? textOf(method) ?? '?',
    code: numberOf(code),
    failure: textOf(failure),
    durationMs: numberOf(durationMs),
    callerUid: numberOf(callerUid),
    caller: textOf(caller),
    containerId: textOf(containerId),
    containerName: textOf(containerName),
    labels: labelsOf(labels),
    podId,
    namespace,
    pod,
    image: textOf(image),
    askedImages: specsOf(asked).flatMap((spec) => imagesAskedFor(spec ?? {})),
    askedContainers: containersOf(restored),
    imageIds: textsOf(imageIds),
    streams: textsOf(streams),
    sizeBytes: numberOf(sizeBytes),
    program: textOf(program)?.split(/\s/, 1)[0] ?? null,
    exitCode: numberOf(exitCode),
  };
};

/**
 * The calls of a range in order, one at a time; only those for which a condition in SQL holds, where there is one.
 *
 * @param isBeforeDamage  the record behind the last of them cannot be read
 * @param isToChoose  with all that each had to do with and asked for, which somebody chooses from
 */
export function* readCalls(
  queries: Queries,
  { fromSeq, toSeq }: Seqs,
  condition: string | null,
  isBeforeDamage: boolean,
  isToChoose: boolean,
): Generator<CallRow> {
  const narrowed = condition === null ? '' : ` AND ${condition}`;
  // Of a range SQLite reads one record further than it is asked to.
  const throughSeq = isBeforeDamage ? toSeq - 1 : toSeq;
  for (const row of queries.ask(callsSql(`seq BETWEEN ? AND ?${narrowed}`, isToChoose), [fromSeq, throughSeq]).rows)
    yield callOf(row);
  if (throughSeq === toSeq || toSeq < fromSeq) return;
  for (const row of queries.ask(callsSql(`seq = ?${narrowed}`, isToChoose), [toSeq]).rows) yield callOf(row);
}

/** How many records of a range are pruned: nothing of them can be counted. */
export const countPruned = (queries: Queries, { fromSeq, toSeq }: Seqs): number => {
  // No more of them than there are, lest SQLite look one further.
  const question =
    'SELECT count(*) FROM (SELECT type FROM records WHERE seq BETWEEN ? AND ? LIMIT ?) WHERE type IS NULL';
  const [[count] = []] = queries.ask(question, [fromSeq, toSeq, Math.max(0, toSeq - fromSeq + 1)]).rows;
  return numberOf(count) ?? 0;
};
