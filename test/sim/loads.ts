/**
 * How busy nodes report to be, in worlds where leaders gather: idle or busy for some seconds at a time, and idle after
 * the faults have ended. It draws nothing, so worlds in which leaders do not gather stay the same.
 */
import type { NodeId } from '../../raft/types.ts';
import type { NodeLoad } from '../../src/node/gathering.ts';
import type { Settings } from './settings.ts';

const PHASE_MILLIS = 4_000;
/** In one of this many phases a node is busy. */
const BUSY_EVERY = 5;
const BUSY = 0.9;

/** In half of the worlds. */
export function hasBusyNodes({ features }: Settings): boolean {
  return features.includes('costs');
}

/** @param node the node that reports; @param nowMillis in real time */
export function loadOf(settings: Settings, node: NodeId, nowMillis: number): NodeLoad {
  const phase = Math.floor(nowMillis / PHASE_MILLIS);
  const mayBeBusy = hasBusyNodes(settings) && nowMillis < settings.safetyMillis;
  const isBusy = mayBeBusy && (7 * node + 3 * phase) % BUSY_EVERY === 0;
  return { busy: isBusy ? BUSY : 0, idleProcessors: 1, asked: 0 };
}
