/** Reads the log of a core, which is private to it. */
import type { RaftCore } from '../../raft/core.ts';
import type { LogPosition } from '../../raft/types.ts';

/** The position at `index` of a core's log, or the log's base if it does not go back so far. */
export function positionAt(core: RaftCore, index: number): LogPosition {
  return core.compactionPoint(index, 0);
}

/** The positions of all entries in memory. */
export function positionsOf(core: RaftCore): LogPosition[] {
  const positions: LogPosition[] = [];
  const { index: base } = core.logBase;
  for (let i = base + 1; i <= core.lastPosition.index; i += 1) positions.push(positionAt(core, i));
  return positions;
}

/** The terms of all entries in memory. */
export function termsOf(core: RaftCore): number[] {
  return positionsOf(core).map(({ term }) => term);
}
