/**
 * How busy nodes say they are, where leaders gather: idle or busy for some seconds at a time, and idle when nothing breaks any more.
 * No draw is behind it: worlds in which leaders do not gather stay what they are.
 */
import type { NodeId } from '../../raft/types.ts';

const PHASE_MILLIS = 4_000;
/** In one of so many phases a node is busy. */
const BUSY_EVERY = 5;
const BUSY = 0.9;

/** @param node of which; @param nowMillis in real time; @param busyUntilMillis from then on nobody is */
export function busyShareOf(node: NodeId, nowMillis: number, busyUntilMillis: number): number {
  if (nowMillis >= busyUntilMillis) return 0;
  const phase = Math.floor(nowMillis / PHASE_MILLIS);
  return (7 * node + 3 * phase) % BUSY_EVERY === 0 ? BUSY : 0;
}
