/** A pod's own users, as numbers of the node's. Types only. */

/** Ids `first` to `first + length - 1` of the node, seen as 0 to `length - 1`. */
export interface IdRange {
  readonly first: number;
  readonly length: number;
}

export interface PodUserNamespace {
  readonly uids: IdRange;
  readonly gids: IdRange;
}

/** A tree of the node and the place where it is mounted again, its owners seen through a user namespace. */
export interface MappedMount {
  readonly source: string;
  readonly target: string;
}
