/**
 * The end of a node, in an order that clients and peers hardly notice: first it says that it stops, and hands over what it
 * leads; then clients that come again and again learn to go elsewhere; then it takes no new ones, and answers what it has.
 * Every step has a bound, so that one client, one peer or one group cannot hold up the end.
 */
import { setImmediate as afterReading, setTimeout as delay } from 'node:timers/promises';
import type { FrontDoor } from '../api/front-door.ts';
import type { NodeCore } from './node-core.ts';

export interface StopLimits {
  /** After everything is handed over, at least so long: what peers have asked by then is answered. */
  readonly lingerMillisMin: number;
  /** At most so long, while clients hold on to connections they may use any moment. */
  readonly lingerMillisMax: number;
  /** For what is open then. */
  readonly openMillisMax: number;
}

/** Peers have asked what they are going to ask of a node that leads nothing. */
const LINGER_MILLIS_MIN = 100;
/** Pools of clients keep connections that they use only now and then: one used once in this time is closed by an answer. */
const LINGER_MILLIS_MAX = 800;
/** What open requests may take beyond their deadline: the rest of a body, a tick, a slow socket. */
const LAST_ANSWERS_MILLIS_MAX = 500;
/** Whatever the deadline is: the process is ended by force at some time, and its disk shall be closed before. */
const OPEN_MILLIS_MAX = 6_000;
const LOOK_MILLIS = 10;

/** @param deadlineMillis of requests */
export function stopLimits(deadlineMillis: number): StopLimits {
  return {
    lingerMillisMin: LINGER_MILLIS_MIN,
    lingerMillisMax: LINGER_MILLIS_MAX,
    openMillisMax: Math.min(deadlineMillis + LAST_ANSWERS_MILLIS_MAX, OPEN_MILLIS_MAX),
  };
}

/** Resolves when nobody waits for this node any more, or has no right to. */
export async function takeLeave(
  core: NodeCore,
  doors: readonly FrontDoor[],
  limits: StopLimits,
): Promise<void> {
  core.leave();
  while (!core.hasLeft) await delay(LOOK_MILLIS);
  const { lingerMillisMin, lingerMillisMax, openMillisMax } = limits;
  const handedOverAt = performance.now();
  const lingered = (): number => performance.now() - handedOverAt;
  // Each answer closes its connection now. Who stays silent for so long may be reset: it has nothing to lose.
  while (
    lingered() < lingerMillisMin ||
    (lingered() < lingerMillisMax && (await connectionCount(doors)) > 0)
  ) {
    await delay(LOOK_MILLIS);
  }
  // Timers come first when a loop that was held up goes on: what came meanwhile is read before idle connections are
  // closed.
  await afterReading();
  const closed = Promise.all(doors.map(async (door) => door.close()));
  const isOver = closed.then(() => true);
  const closedAt = performance.now();
  const waited = (): number => performance.now() - closedAt;
  while (waited() < openMillisMax) {
    const isClosed = await Promise.race([isOver, delay(LOOK_MILLIS, false)]);
    if (isClosed && core.isIdle) break;
  }
  core.router.close();
  // A client that never finishes its request must not keep the disk from being closed.
  for (const door of doors) door.closeAllConnections();
  await closed;
}

async function connectionCount(doors: readonly FrontDoor[]): Promise<number> {
  const counts = await Promise.all(doors.map(async (door) => door.connectionCount()));
  return counts.reduce((sum, count) => sum + count, 0);
}
