/**
 * Before its node says that it is ready, a process decides a few thousand requests of its own, by the code that decides those of clients. Without
 * that, the first second is spent on code that is not compiled yet, and of many requests at once most are refused as too late. It
 * bounds how much and for how long; the node that starts learns nothing of it, and starts whatever comes of it.
 */
import type { Logger } from 'pino';
import { ScratchCluster } from './scratch-cluster.ts';

/**
 * A node that starts alone takes about 1.2 s for so many. Three that start together on two processors then decide in their first second
 * 0.3 to 0.45 of what they decide later, instead of 0.2 to 0.25. With warm nodes that is 0.65 to 0.7: the load generator starts cold too.
 */
const REQUESTS = 4_000;
/** Three nodes that start together on two processors need nearly as long. A busier machine starts its nodes all the same. */
const MILLIS_MAX = 3_000;

export interface WarmUpInit {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly monotonicMillis: () => number;
}

let warmingUp: Promise<void> | undefined;

/** The first call warms up the whole process; the others wait for that. */
export function warmUpOnce(init: WarmUpInit): Promise<void> {
  warmingUp ??= warmUp(init);
  return warmingUp;
}

/** Never rejects: a node that could not warm up is slow at first. */
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
    logger.info({ ...cluster.answers, millis }, 'warmed up');
  } finally {
    await cluster.end();
  }
}
