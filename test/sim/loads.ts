/**
 * How busy nodes say they are, where leaders gather: idle or busy for some seconds at a time, and idle when nothing breaks any more.
 * No draw is behind it: worlds in which leaders do not gather stay what they are.
 */
import type { NodeId } from '../../raft/types.ts';
import type { NodeLoad } from '../../src/node/gathering.ts';
import type { Settings } from './settings.ts';

const PHASE_MILLIS = 4_000;
/** In one of so many phases a node is busy. */
const BUSY_EVERY = 5;
const BUSY = 0.9;

/** In half of the worlds. */
export function hasBusyNodes({ features }: Settings): boolean {
  return features.includes('costs');
}

/** @param node of which; @param nowMillis in real time */
export function loadOf(settings: Settings, node: NodeId, nowMillis: number): NodeLoad {
  const phase = Math.floor(nowMillis / PHASE_MILLIS);
  const mayBeBusy = hasBusyNodes(settings) && nowMillis < settings.safetyMillis;
  const isBusy = mayBeBusy && (7 * node + 3 * phase) % BUSY_EVERY === 0;
  return { busy: isBusy ? BUSY : 0, idleProcessors: 1, asked: 0 };
}
