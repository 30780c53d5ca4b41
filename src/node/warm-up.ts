/**
 * Before its node says that it is ready, a process decides a few thousand requests of its own, by the code that decides those of clients. Without
 * that, the first second is spent on code that is not compiled yet, and of many requests at once most are refused as too late. It
 * bounds how much and for how long; the node that starts learns nothing of it, and starts whatever comes of it.
 */
import type { Logger } from 'pino';
import { ScratchCluster } from './scratch-cluster.ts';

/** With half as many, the first thousands of clients took a fifth more of the processor; with twice as many, hardly less. */
const REQUESTS = 2_000;
/** Three nodes that start together on two processors take nearly so long. A busier machine starts its nodes all the same. */
const MILLIS_MAX = 1_500;

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
    while (cluster.asked < REQUESTS && cluster.hasTime) await cluster.askPipelines();
    const millis = Math.round(monotonicMillis() - startedMillis);
    logger.info({ ...cluster.answers, millis }, 'warmed up');
  } finally {
    cluster.end();
  }
}
