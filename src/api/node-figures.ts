/**
 * The figures that a node reports to the others twice a second: latency, disk, clock and memory. For monitoring only;
 * nothing is decided by them.
 */

/** The figures of one node. */
export interface NodeFigures {
  /**
   * The 99th percentile of its answer times in the last ten seconds, in milliseconds. It may be up to a fifth too
   * high. Null: it answered nothing.
   */
  readonly p99Millis: number | null;
  /** The same for synced writes to its disk. */
  readonly diskP99Millis: number | null;
  /**
   * How much faster its clock runs than the median of its peers' clocks, in parts per million. Null: not known yet.
   */
  readonly clockPpm: number | null;
  /** The memory that its partitions use for keys, in bytes, and the bound above which new keys are refused. */
  readonly stateBytes: number;
  readonly stateBytesMax: number;
}

/** True if `value` is a complete `NodeFigures`. */
export function isNodeFigures(value: unknown): value is NodeFigures {
  if (typeof value !== 'object' || value === null) return false;
  const figures = value as Readonly<Record<keyof NodeFigures, unknown>>;
  return (
    [figures.p99Millis, figures.diskP99Millis, figures.clockPpm].every(
      (each) => each === null || typeof each === 'number',
    ) && [figures.stateBytes, figures.stateBytesMax].every((each) => typeof each === 'number')
  );
}
