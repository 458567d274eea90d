/** Which decision each call leads to. */
import {
  createContainer,
  removeContainer,
  reopenContainerLog,
  startContainer,
  stopContainer,
} from '../container/decide.ts';
import { attach, attachSession, exec, execSession, execSync } from '../container/exec.ts';
import { checkpointContainer } from '../container/checkpoint.ts';
import { updateContainerResources } from '../container/update.ts';
import { fetchImages, pullImage, removeImage } from '../image/decide.ts';
import { acknowledgeJournal } from '../node/decide.ts';
import { checkpointPod } from '../pod-sandbox/checkpoint.ts';
import { restorePod } from '../pod-sandbox/restore.ts';
import { removePodSandbox, runPodSandbox, stopPodSandbox } from '../pod-sandbox/decide.ts';
import { portForward, portForwardSession } from '../pod-sandbox/port-forward.ts';
import { updatePodSandboxResources } from '../pod-sandbox/update.ts';
import { requestIdFailure } from './canonical.ts';
import { type Input, NODE_STREAM, type Sequenced } from '../model/records.ts';
import { complete, emit, OK, type Turn } from '../deciding/turn.ts';

type CallReceived = Sequenced<Extract<Input, { type: 'call.received' }>>;

export function decideCall(turn: Turn, input: CallReceived): void {
  const call = turn.state.calls.get(input.seq);
  if (call === undefined) return;
  const { request } = input.body;
  const failure = requestIdFailure(turn.state, request);
  if (failure !== null) return complete(turn, call, { ok: false, failure });
  switch (request.method) {
    case 'RunPodSandbox':
      return runPodSandbox(turn, call, request);
    case 'RestorePod':
      return restorePod(turn, call, request);
    case 'StopPodSandbox':
      return stopPodSandbox(turn, call, request);
    case 'RemovePodSandbox':
      return removePodSandbox(turn, call, request);
    case 'CreateContainer':
      return createContainer(turn, call, request);
    case 'StartContainer':
      return startContainer(turn, call, request);
    case 'StopContainer':
      return stopContainer(turn, call, request);
    case 'RemoveContainer':
      return removeContainer(turn, call, request);
    case 'ExecSync':
      return execSync(turn, call, request);
    case 'Exec':
      return exec(turn, call, request);
    case 'Attach':
      return attach(turn, call, request);
    case 'PortForward':
      return portForward(turn, call, request);
    case 'ExecSession':
      return execSession(turn, call, request);
    case 'AttachSession':
      return attachSession(turn, call, request);
    case 'PortForwardSession':
      return portForwardSession(turn, call, request);
    case 'ReopenContainerLog':
      return reopenContainerLog(turn, call, request);
    case 'CheckpointContainer':
      return checkpointContainer(turn, call, request);
    case 'CheckpointPod':
      return checkpointPod(turn, call, request);
    case 'UpdateContainerResources':
      return updateContainerResources(turn, call, request);
    case 'UpdatePodSandboxResources':
      return updatePodSandboxResources(turn, call, request);
    case 'PullImage':
      return pullImage(turn, call, request);
    case 'LoadImages':
      return fetchImages(turn, call);
    case 'RemoveImage':
      return removeImage(turn, call, request);
    case 'UpdateRuntimeConfig':
      emit(turn, NODE_STREAM, { type: 'node.configured', body: { podCidr: request.podCidr } });
      return complete(turn, call, OK);
    case 'SetLogLevel':
      // Nothing of the node's state: who set it, and when, is all there is to keep.
      return complete(turn, call, OK);
    case 'AcknowledgeJournal':
      return acknowledgeJournal(turn, call);
    case 'Refused':
      return complete(turn, call, { ok: false, failure: request.failure });
    case 'Unimplemented':
      return complete(turn, call, {
        ok: false,
        failure: { reason: 'NotImplemented', message: `${request.rpc} is not offered by this version of scribe.` },
      });
  }
}
