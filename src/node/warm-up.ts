/**
 * Warms up the process before its node reports that it is ready: it decides a few thousand requests of its own with
 * the code for real ones. Otherwise the first second would run uncompiled code, and most of many simultaneous
 * requests would be refused as too late. Amount and time are bounded, and the node starts whatever the result is.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { Logger } from 'pino';
import { ScratchCluster } from './scratch-cluster.ts';

/**
 * A node that starts alone takes about 1.2 s for this many. Three nodes that start together on two processors then
 * decide 0.3 to 0.45 of their later throughput in their first second, instead of 0.2 to 0.25. With warm nodes it is
 * 0.65 to 0.7, as the load generator starts cold as well.
 */
const REQUESTS = 4_000;
/**
 * Three nodes that start together on two processors need nearly this long. On a busier machine the warm-up is cut
 * short.
 */
const MILLIS_MAX = 3_000;

/** What the warm-up needs. */
export interface WarmUpInit extends MonotonicClock {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

let warmingUp: Promise<void> | undefined;

/** Warms up the process. Later calls wait for the first one. */
export function warmUpOnce(init: WarmUpInit): Promise<void> {
  warmingUp ??= warmUp(init);
  return warmingUp;
}

/** Never rejects: a node that could not warm up is only slow at first. */
export async function warmUp(init: WarmUpInit): Promise<void> {
  try {
    await decideSome(init);
  } catch (error) {
    init.logger.warn({ err: error }, 'could not warm up: the first requests will take longer');
  }
}

async function decideSome({ logger, monotonicMillis }: WarmUpInit): Promise<void> {
  const startedMillis = monotonicMillis();
  const cluster = new ScratchCluster(monotonicMillis, startedMillis + MILLIS_MAX);
  try {
    await cluster.start();
    while (cluster.asked < REQUESTS && cluster.hasTime) await cluster.ask();
    const millis = Math.round(monotonicMillis() - startedMillis);
    logger.info(
      { ...cluster.answers, millis },
      'warmed up: a limiter in memory answered requests of this process, and was thrown away; nothing was charged',
    );
  } finally {
    await cluster.end();
  }
}
