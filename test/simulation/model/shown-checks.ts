/** What ContainerStatus may show, held against how the process really ended and against what was shown before. */
import type { Node, ShownContainer } from './words.ts';

const EXITED = 'CONTAINER_EXITED';
const RANK: Readonly<Record<string, number>> = { CONTAINER_CREATED: 0, CONTAINER_RUNNING: 1, [EXITED]: 2 };

export function checkShown(
  node: Node,
  before: ShownContainer | undefined,
  shown: ShownContainer,
  fail: (message: string) => never,
): void {
  const { id, state, reason } = shown;
  if (before !== undefined) {
    if ((RANK[state] ?? 0) < (RANK[before.state] ?? 0)) fail(`Container ${id} was ${before.state} and is ${state}.`);
    if (before.createdAtNs !== shown.createdAtNs) fail(`Container ${id} was made at two times.`);
    if (before.startedAtNs !== null && before.startedAtNs !== shown.startedAtNs)
      fail(`Container ${id} was started at two times.`);
  }
  if (!node.clockWasSet() && shown.startedAtNs !== null && shown.startedAtNs < shown.createdAtNs)
    fail(`Container ${id} was started before it was made.`);
  if (state !== EXITED || reason === '') return;
  if (
    !node.clockWasSet() &&
    shown.finishedAtNs !== null &&
    shown.finishedAtNs < (shown.startedAtNs ?? shown.createdAtNs)
  )
    fail(`Container ${id} ended before it began.`);
  if (node.runs(id)) fail(`Container ${id} is EXITED (${reason}) and its process runs.`);
  checkReason(node, shown, fail);
}

function checkReason(node: Node, shown: ShownContainer, fail: (message: string) => never): void {
  const { id, reason, exitCode, finishedAtNs, startedAtNs } = shown;
  if (reason === 'StartError') {
    if (exitCode !== 128) fail(`Container ${id} could not be started and shows code ${exitCode}.`);
    return;
  }
  if (startedAtNs === null) fail(`Container ${id} ended (${reason}) and was never started.`);
  if (reason === 'Unknown') {
    if (exitCode !== 255) fail(`Nobody knows how container ${id} ended, and it shows code ${exitCode}.`);
    return;
  }
  const end = node.trueEnd(id);
  if (end === undefined) return fail(`Container ${id} shows ${reason} and never ended.`);
  if (end.exitStatus !== exitCode) fail(`Container ${id} ended with ${end.exitStatus} and shows ${exitCode}.`);
  const at = end.atNs < startedAtNs ? startedAtNs : end.atNs;
  if (finishedAtNs !== at) fail(`Container ${id} ended at ${at} and shows ${finishedAtNs}.`);
  const oomed = node.ranOutOfMemory(id);
  if (reason === 'OOMKilled' && !oomed) fail(`Container ${id} shows OOMKilled and had memory enough.`);
  if (reason !== 'OOMKilled' && end.oomKills > 0)
    fail(`Container ${id} was killed for lack of memory and shows ${reason}.`);
  if (reason === 'Completed' && exitCode !== 0) fail(`Container ${id} shows Completed and code ${exitCode}.`);
  if (reason === 'Error' && exitCode === 0) fail(`Container ${id} shows Error and code 0.`);
}
