/**
 * Classes of block I/O as an admin's file describes them: what containers of a class may do with which devices. Data
 * only, plain numbers: bytes or operations a second.
 */

/** Limits on the devices that patterns name; without patterns, the weight on all others. */
export interface BlockIOParameters {
  /** Paths in /dev, with *, ? and [a-z] for parts of names; absent: every device. */
  readonly devices?: readonly string[];
  readonly weight?: number;
  readonly throttleReadBps?: number;
  readonly throttleWriteBps?: number;
  readonly throttleReadIOPS?: number;
  readonly throttleWriteIOPS?: number;
}

/** By name; of one class, later parameters win over earlier ones for the same device. */
export type BlockIOClasses = Readonly<Record<string, readonly BlockIOParameters[]>>;

export interface BlockDevice {
  readonly major: number;
  readonly minor: number;
}

/** Parameters with the devices that their patterns were found to name; null: every device. */
export interface BlockIOFact extends Omit<BlockIOParameters, 'devices'> {
  readonly devices: readonly BlockDevice[] | null;
}
