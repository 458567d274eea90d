/** What is kept of a program's output, bounded: its beginning, told as it comes, or its end, told when all is over. */

/** false asks for a pause. */
type Tell = (chunk: Uint8Array) => boolean;

export interface BoundedOutput {
  readonly take: Tell;
  /** Nothing is taken after it. */
  readonly finish: () => void;
  readonly truncated: () => boolean;
}

export const keepBeginning = (bytesMax: number, tell: Tell): BoundedOutput => {
  let left = bytesMax;
  let truncated = false;
  return {
    take: (chunk) => {
      const kept = chunk.subarray(0, left);
      left -= kept.length;
      truncated ||= kept.length < chunk.length;
      return kept.length === 0 || tell(kept);
    },
    finish: () => undefined,
    truncated: () => truncated,
  };
};

export const keepEnd = (bytesMax: number, tell: Tell): BoundedOutput => {
  let kept: Uint8Array = Buffer.alloc(0);
  let truncated = false;
  return {
    take: (chunk) => {
      const all = Buffer.concat([kept, chunk]);
      truncated ||= all.length > bytesMax;
      kept = all.subarray(Math.max(0, all.length - bytesMax));
      return true;
    },
    finish: () => {
      if (kept.length > 0) tell(kept);
    },
    truncated: () => truncated,
  };
};
