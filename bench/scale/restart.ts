/** Measures how long a node with full logs takes to restart. */
import { usageOfAll } from '../process-usage.ts';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import { textFrom } from '../peers/metrics-text.ts';
import { runLoad } from '../run-load.ts';
import type { Running } from '../running.ts';

const NOTHING = (): void => undefined;
const NODE = 3;

export async function measureRestart(running: Running, seconds: number, partitions: number): Promise<void> {
  const cluster = await QuorateCluster.start(running, { partitions });
  const { grants } = await runLoad(
    {
      kind: 'http',
      workload: 'grants',
      seed: 1,
      addresses: cluster.http,
      connections: 16,
      batch: 100,
      warmUpMillis: 0,
      measuredMillis: seconds * 1_000,
    },
    running,
    { measuring: NOTHING, measured: NOTHING },
  );
  const address = cluster.config.nodes.find(({ id }) => id === NODE)?.http;
  if (address === undefined) throw new Error(`there is no node ${NODE}`);
  const metrics = await textFrom(`http://${address.host}:${address.port}/metrics`);
  await cluster.kill(NODE);
  const startedMillis = performance.now();
  cluster.startNode(NODE);
  await cluster.ready();
  const readyMillis = performance.now() - startedMillis;
  const usage = usageOfAll(cluster.pids.slice(-1));
  const state = /^quorate_state_bytes (\S+)/m.exec(metrics)?.[1] ?? '?';
  console.log(
    `after ${grants} grants (state ${state} bytes): ready after ${readyMillis.toFixed(0)} ms, ${usage?.cpuSeconds.toFixed(2) ?? '?'} s of processor time`,
  );
  await cluster.stop();
}
