/** How a node works just now, as it says twice a second to the others. For people who watch; nothing is decided by it. */

export interface NodeFigures {
  /** 99 of 100 of its answers took no longer, a fifth too long at most, of the last ten seconds; null: it answered nothing. */
  readonly p99Millis: number | null;
  /** The same of synced writes to its disk. */
  readonly diskP99Millis: number | null;
  /** By how much its clock runs faster than those of its peers (the median of them), in parts per million; null: not known yet. */
  readonly clockPpm: number | null;
  /** What its partitions remember, in bytes, and beyond which new keys are refused. */
  readonly stateBytes: number;
  readonly stateBytesMax: number;
}

/** True if `value` has all of it. */
export function isNodeFigures(value: unknown): value is NodeFigures {
  if (typeof value !== 'object' || value === null) return false;
  const figures = value as Readonly<Record<keyof NodeFigures, unknown>>;
  return (
    [figures.p99Millis, figures.diskP99Millis, figures.clockPpm].every(
      (each) => each === null || typeof each === 'number',
    ) && [figures.stateBytes, figures.stateBytesMax].every((each) => typeof each === 'number')
  );
}
