/** Numbers of the signals that scribe sends by itself, those of x86 and ARM; oci/signals.ts knows all by name. */

export const SIGKILL = 9;
export const SIGTERM = 15;
export const SIGSTOP = 19;
