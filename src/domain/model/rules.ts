/**
 * By which rules decisions are made. Those of a journal are decided again by the rules that held when it was written, so
 * a decision that would change for an older journal asks here first. Each start of the daemon records its own (C13).
 *
 *   1  a task is created and started by one effect, StartTask
 *   2  CreateTask creates it, StartTask starts it; a start waits for claims of pods that are NOTREADY too; pods and
 *      containers that it finds gone are told of by records of their own; the random path of kubelet's termination log
 *      makes no other request
 *   3  a start fails behind a shim that can't be stopped; what a start passed over is looked at again soon, and
 *      undone where nobody asks for it; a start that was not answered is EXITED when what may run of it was ended; a
 *      task that is to be killed is ended without its shim when that is mute
 *   4  what NRI plugins want of limits beyond CRI's words is put in force; a container that one evicts says so when it
 *      has exited
 *   5  NRI's validators are asked before a container is made; why a pod is undone is recorded; a start undoes a pod whose
 *      shim was up while it waited for plugins
 *   6  who restores a pod hears of its undoing while a container of it can't be cleaned up; the files of a container that
 *      is removed are asked to go while its task is being deleted; a command is ended of which nobody said how it ended;
 *      NRI's validators are asked while a container's files are made; the shim of a pod without a pause task is started
 *      beside its network, and stays as long as the pod; an image that the disk does not have all of is synced after its pull
 *      was answered; a container's task is made before its start is asked for
 *   7  OCI specs do not name the devices that every OCI runtime allows by itself
 *   8  the files of a container are asked for together with what its spec depends on, where no NRI plugin has a say
 *   9  a start undoes every pod that was still being made, also one of which all was made and that waited for plugins only
 *   10 a task that was killed and that its shim calls running is asked for again when its exit stays away
 *   11 a limit of processes that an NRI plugin sets takes the place of the one there was; network interfaces and
 *      memory policies that plugins want are refused where the OCI runtime does not know them, and so are CDI devices of
 *      theirs with a class of RDT where there is no resctrl; a change of memory alone takes swap along; less memory and
 *      swap together than memory alone is refused at creation; devices that a pod with users of its own has by other names
 *      than the node are mounts; who waits for a pod hears that it was stopped meanwhile; while the journal is doubted,
 *      creations of an earlier life go on when they are asked for again, and not otherwise, and what was to be removed
 *      before it was made is removed, as is what was being undone of a pod that is to be removed; a
 *      container that an NRI plugin evicts before it is started can not be started any more; one that a pod is being
 *      restored with is not joined by who asks for it alone
 *   12 the content of removed images goes while others are pulled, and together with that of others that are on their way
 *      out; a pod that nobody claimed is looked at again while it has containers that nobody claimed; a shim that did not
 *      answer what a pod or container needs of it is asked whether it is there; who asked for a start that the daemon's end
 *      cut off hears so, and not that the runtime failed; a pod is not torn down while its shim is asked again of which the
 *      answer could not be dealt with; two minutes later a shim is asked how a task does that could not be signalled;
 *      a path in an image is passed over where a mount names no image
 */
import type { NodeState } from './state.ts';

/** What is decided by today. */
export const DECISION_RULES = 12;

/** What the state's journal is written by at this point; absent in the oldest. */
export const rulesOf = ({ facts }: Pick<NodeState, 'facts'>): number => facts?.rules ?? 1;
