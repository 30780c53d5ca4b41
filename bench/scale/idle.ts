/** Measures the processor time of an idle cluster for different numbers of partitions. */
import { setTimeout as sleep } from 'node:timers/promises';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import { usageOfAll } from '../process-usage.ts';
import type { Running } from '../running.ts';

export interface IdleOptions {
  readonly partitions: readonly number[];
  readonly seconds: number;
}

/** Pause after the start, in which leaders are balanced and hot code is compiled. */
const SETTLE_MILLIS = 10_000;

export async function measureIdle(running: Running, { partitions, seconds }: IdleOptions): Promise<void> {
  console.log('partitions   % of a core per node   MiB per node');
  for (const count of partitions) {
    const cluster = await QuorateCluster.start(running, { partitions: count });
    await sleep(SETTLE_MILLIS);
    const { pids } = cluster;
    const before = usageOfAll(pids);
    const startedMillis = performance.now();
    await sleep(seconds * 1_000);
    const after = usageOfAll(pids);
    const elapsedSeconds = (performance.now() - startedMillis) / 1_000;
    if (before === undefined || after === undefined)
      throw new Error('the usage of processes can be read on Linux only');
    const fraction = (after.cpuSeconds - before.cpuSeconds) / elapsedSeconds / pids.length;
    const mebibytes = after.residentBytes / pids.length / 2 ** 20;
    console.log(
      `${String(count).padStart(10)}${(100 * fraction).toFixed(1).padStart(23)}${mebibytes.toFixed(0).padStart(15)}`,
    );
    await cluster.stop();
  }
}
