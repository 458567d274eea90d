/**
 * What decides each call that changes something: a row each, as the catalogue has. Here and not there, since who only tells
 * calls apart would have to load all that decides. A method without a row is a compile error.
 */
import { checkpointContainer } from '../container/checkpoint.ts';
import {
  createContainer,
  removeContainer,
  reopenContainerLog,
  startContainer,
  stopContainer,
} from '../container/decide.ts';
import { attach, attachSession, exec, execSession, execSync } from '../container/exec.ts';
import { updateContainerResources } from '../container/update.ts';
import { complete, OK, type Turn } from '../deciding/turn.ts';
import { fetchImages, pullImage, removeImage } from '../image/decide.ts';
import type { CallMethod, CallRequest, RequestOf } from '../model/records.ts';
import { refused } from '../model/result.ts';
import type { OpenCall } from '../model/state.ts';
import { acknowledgeJournal, setLogLevel, updateRuntimeConfig } from '../node/decide.ts';
import { checkpointPod } from '../pod-sandbox/checkpoint.ts';
import { removePodSandbox, runPodSandbox, stopPodSandbox } from '../pod-sandbox/decide.ts';
import { portForward, portForwardSession } from '../pod-sandbox/port-forward.ts';
import { restorePod } from '../pod-sandbox/restore.ts';
import { updatePodSandboxResources } from '../pod-sandbox/update.ts';

type Decide<R extends CallRequest> = (turn: Turn, call: OpenCall, request: R) => void;

/** Nothing is decided of what was done already. */
const endAsItWent: Decide<RequestOf<'ReloadConfig' | 'Read'>> = (turn, call, { failure }) =>
  complete(turn, call, failure === undefined ? OK : refused(failure));

const decisions: { readonly [M in CallMethod]: Decide<RequestOf<M>> } = {
  RunPodSandbox: runPodSandbox,
  RestorePod: restorePod,
  StopPodSandbox: stopPodSandbox,
  RemovePodSandbox: removePodSandbox,
  UpdatePodSandboxResources: updatePodSandboxResources,
  CheckpointPod: checkpointPod,
  PortForward: portForward,
  PortForwardSession: portForwardSession,
  CreateContainer: createContainer,
  StartContainer: startContainer,
  StopContainer: stopContainer,
  RemoveContainer: removeContainer,
  ReopenContainerLog: reopenContainerLog,
  UpdateContainerResources: updateContainerResources,
  CheckpointContainer: checkpointContainer,
  ExecSync: execSync,
  Exec: exec,
  Attach: attach,
  ExecSession: execSession,
  AttachSession: attachSession,
  PullImage: pullImage,
  LoadImages: fetchImages,
  RemoveImage: removeImage,
  UpdateRuntimeConfig: updateRuntimeConfig,
  SetLogLevel: setLogLevel,
  AcknowledgeJournal: acknowledgeJournal,
  ReloadConfig: endAsItWent,
  ClearStrays: (turn, call) => complete(turn, call, OK),
  ReadJournal: (turn, call) => complete(turn, call, OK),
  Read: endAsItWent,
  Refused: (turn, call, { failure }) => complete(turn, call, refused(failure)),
  Unimplemented: (turn, call, { rpc }) =>
    complete(
      turn,
      call,
      refused({ reason: 'NotImplemented', message: `${rpc} is not offered by this version of scribe.` }),
    ),
};

/** Decides the call, also once more when what it waited for is there. */
export const decideRequest = (turn: Turn, call: OpenCall): void => {
  // A row is given nothing but requests of its own method.
  const decide = decisions[call.request.method] as Decide<CallRequest>;
  decide(turn, call, call.request);
};
