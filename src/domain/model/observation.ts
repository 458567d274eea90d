/** Facts about the world that arrive unasked, in the words of whoever observes them. Types only. */
import type { LogKeeperEnded, LogKeeperStarted } from './log-keeper.ts';
import type { DamagedContent, JournalDoubt, NodeNote } from './notes.ts';
import type { NriNote } from './nri-plugins.ts';
import type { TaskExit } from './tasks.ts';

export type Observation =
  /** execId is null for the container's own task. The same exit may be observed any number of times. */
  | {
      readonly kind: 'TaskExited';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly execId: string | null;
      readonly exit: TaskExit;
    }
  | { readonly kind: 'TaskOomed'; readonly containerId: string }
  /** The connection to a shim closed and its process is gone. */
  | { readonly kind: 'ShimLost'; readonly podSandboxId: string }
  | ({ readonly kind: 'LogKeeperStarted' } & LogKeeperStarted)
  | ({ readonly kind: 'LogKeeperEnded' } & LogKeeperEnded)
  /** Of an image that is whole as far as the journal knows. */
  | { readonly kind: 'ContentDamaged'; readonly imageId: string; readonly damaged: DamagedContent }
  | { readonly kind: 'JournalDoubted'; readonly doubt: JournalDoubt }
  | { readonly kind: 'NodeNoted'; readonly note: NodeNote }
  /** A plugin registered, or is gone. */
  | { readonly kind: 'NriNoted'; readonly note: NriNote }
  /** The CNI configuration changed: a conflist to use from now on, or why there is none. */
  | {
      readonly kind: 'NetworkConfigured';
      /** Whose pods it is for; absent: those of handlers that have none of their own. */
      readonly handler?: string;
      readonly confList: unknown;
      readonly problem: string | null;
    };
