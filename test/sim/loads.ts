/**
 * How busy nodes say they are, where leaders gather: idle or busy for some seconds at a time, and idle when nothing breaks any more.
 * No draw is behind it: worlds in which leaders do not gather stay what they are.
 */
import type { NodeId } from '../../raft/types.ts';
import type { NodeLoad } from '../../src/node/gathering.ts';

const PHASE_MILLIS = 4_000;
/** In one of so many phases a node is busy. */
const BUSY_EVERY = 5;
const BUSY = 0.9;

/** @param node of which; @param nowMillis in real time; @param busyUntilMillis from then on nobody is */
export function loadOf(node: NodeId, nowMillis: number, busyUntilMillis: number): NodeLoad {
  const phase = Math.floor(nowMillis / PHASE_MILLIS);
  const isBusy = nowMillis < busyUntilMillis && (7 * node + 3 * phase) % BUSY_EVERY === 0;
  return { busy: isBusy ? BUSY : 0, idleProcessors: 1, asked: 0 };
}
