/**
 * Stops a node so that clients and peers hardly notice: first it reports that it stops, and hands over its
 * leaderships; then returning clients learn to go elsewhere; then it accepts no new ones and answers what is open.
 * Every step has a bound, so that no client, peer or group can hold up the end.
 */
import { setImmediate as afterReading, setTimeout as delay } from 'node:timers/promises';
import type { ApiListener } from '../api/api-listener.ts';
import type { NodeCore } from './node-core.ts';

/** Time limits of a stop. */
export interface StopLimits {
  /** Shortest time after everything is handed over, so that requests sent by peers until then are answered. */
  readonly lingerMillisMin: number;
  /** Longest time to wait for clients that keep idle connections. */
  readonly lingerMillisMax: number;
  /** Longest time for requests that are still open then. */
  readonly openMillisMax: number;
}

/** Within this time peers have sent everything that they send to a node that leads nothing. */
const LINGER_MILLIS_MIN = 100;
/** Connection pools keep idle connections. One that is used within this time is closed with its answer. */
const LINGER_MILLIS_MAX = 800;
/** Time for open requests beyond their deadline: the rest of a body, a tick, a slow socket. */
const LAST_ANSWERS_MILLIS_MAX = 500;
/** Independent of the deadline: the process may be killed at some time, and its disk should be closed before. */
const OPEN_MILLIS_MAX = 6_000;
const CHECK_MILLIS = 10;

/** The time limits of a stop. @param deadlineMillis deadline of requests */
export function stopLimits(deadlineMillis: number): StopLimits {
  return {
    lingerMillisMin: LINGER_MILLIS_MIN,
    lingerMillisMax: LINGER_MILLIS_MAX,
    openMillisMax: Math.min(deadlineMillis + LAST_ANSWERS_MILLIS_MAX, OPEN_MILLIS_MAX),
  };
}

/** Stops serving. Resolves when nobody waits for this node any more, or the time limits are over. */
export async function takeLeave(
  core: NodeCore,
  listeners: readonly ApiListener[],
  limits: StopLimits,
): Promise<void> {
  core.leave();
  while (!core.hasLeft) await delay(CHECK_MILLIS);
  const { lingerMillisMin, lingerMillisMax, openMillisMax } = limits;
  const handedOverAt = performance.now();
  const lingered = (): number => performance.now() - handedOverAt;
  // From now on each answer closes its connection. A client that stays silent for so long may be reset; it loses
  // nothing.
  while (
    lingered() < lingerMillisMin ||
    (lingered() < lingerMillisMax && (await connectionCount(listeners)) > 0)
  ) {
    await delay(CHECK_MILLIS);
  }
  // After the event loop was blocked, timers run first. Read what arrived meanwhile before closing idle
  // connections.
  await afterReading();
  const closed = Promise.all(listeners.map(async (listener) => listener.close()));
  const isOver = closed.then(() => true);
  const closedAt = performance.now();
  const waited = (): number => performance.now() - closedAt;
  while (waited() < openMillisMax) {
    const isClosed = await Promise.race([isOver, delay(CHECK_MILLIS, false)]);
    if (isClosed && core.isIdle) break;
  }
  core.router.close();
  // A client that never finishes its request must not prevent the disk from being closed.
  for (const listener of listeners) listener.closeAllConnections();
  await closed;
}

async function connectionCount(listeners: readonly ApiListener[]): Promise<number> {
  const counts = await Promise.all(listeners.map(async (listener) => listener.connectionCount()));
  return counts.reduce((sum, count) => sum + count, 0);
}
