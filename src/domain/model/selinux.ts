/** Words for SELinux labels, in the node's facts and in what is recorded of a pod. Types only. */

/** What the node's policy has for containers, before categories: user:role:type:level. */
export interface SelinuxContexts {
  readonly process: string;
  readonly file: string;
}

export interface SelinuxLabels {
  /** null: processes are not labelled, because they share processes or IPC of the node. */
  readonly process: string | null;
  /** Of files: mount labels, in the words of the OCI runtime specification. */
  readonly mount: string;
}
