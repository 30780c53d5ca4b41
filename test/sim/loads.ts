/**
 * The load of simulated nodes: how busy they report to be, and the forwarded requests that they shed. It draws nothing,
 * so it changes no other draw.
 */
import type { NodeId } from '../../raft/types.ts';
import type { SheddingOfForwarded } from '../../src/api/api-listener.ts';
import type { NodeLoad } from '../../src/node/gathering.ts';
import type { Settings } from './settings.ts';

const PHASE_MILLIS = 4_000;
/** In one of this many phases a node is busy. */
const BUSY_EVERY = 5;
const BUSY = 0.9;
/** One forwarded request in this many is shed, before any part of it reaches a log. */
const SHED_EACH = 7;

/** Whether nodes are busy at times: in half of the worlds. */
export function hasBusyNodes({ features }: Settings): boolean {
  return features.includes('costs');
}

/**
 * What a node reports in worlds where leaders gather: it is idle or busy for some seconds at a time, and idle after the
 * faults have ended.
 *
 * @param nowMillis in real time
 */
export function loadOf(settings: Settings, node: NodeId, nowMillis: number): NodeLoad {
  const phase = Math.floor(nowMillis / PHASE_MILLIS);
  const mayBeBusy = hasBusyNodes(settings) && nowMillis < settings.safetyMillis;
  const isBusy = mayBeBusy && (7 * node + 3 * phase) % BUSY_EVERY === 0;
  return { busy: isBusy ? BUSY : 0, idleProcessors: 1, asked: 0 };
}

/**
 * A node that is sometimes too busy for forwarded requests and sheds them. The product measures the delay of its event
 * loop for that, but in the simulator a round of the event loop takes no time.
 */
export function someShed(): SheddingOfForwarded {
  let forwarded = 0;
  return {
    maybeRefuseForwarded() {
      forwarded += 1;
      return forwarded % SHED_EACH === 0;
    },
    leftForwarded: () => undefined,
  };
}
