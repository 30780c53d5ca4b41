/** What latency users see at a fixed rate, while nothing, a slow follower, or a change of the rules goes on beside it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { measure, type Sample } from '../measure.ts';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES } from '../workloads.ts';

const SLOW_FOLLOWER = fileURLToPath(new URL('slow-follower.js', import.meta.url));
const SLOW_MILLIS = 500;
const SLOW_NODE = 3;
const WARM_UP_MILLIS = 15_000;
const CONNECTIONS = 64;
const CHANGE_EVERY_MILLIS = 500;

export interface BesideOptions {
  readonly requestsPerSecond: number;
  readonly seconds: number;
}

/** Until it is aborted, one change after the other. Returns how many were answered with success. */
async function changeRules(cluster: QuorateCluster, until: { readonly aborted: boolean }): Promise<number> {
  const [{ host, port } = { host: '', port: 0 }] = cluster.http;
  let changes = 0;
  for (let i = 0; !until.aborted; i += 1) {
    const rules = Object.entries(LOAD_RULES).map(([id, rule]) => ({
      id,
      ...rule,
      limit: rule.limit - (i % 2),
      clock: 'cluster',
    }));
    const { status } = await fetch(`http://${host}:${port}/v1/rules`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ rules }),
    });
    if (status === 200) changes += 1;
    await sleep(CHANGE_EVERY_MILLIS);
  }
  return changes;
}

async function load(
  cluster: QuorateCluster,
  running: Running,
  { requestsPerSecond, seconds }: BesideOptions,
): Promise<Sample> {
  return measure(
    {
      kind: 'open-loop',
      workload: 'grants',
      seed: 1,
      // Clients keep away from a node that is slow.
      addresses: cluster.http.filter((_, i) => i + 1 !== SLOW_NODE),
      connections: CONNECTIONS,
      requestsPerSecond,
      warmUpMillis: WARM_UP_MILLIS,
      measuredMillis: seconds * 1_000,
    },
    { pids: cluster.pids, stop: async () => undefined },
    running,
  );
}

function say(what: string, { decisionsPerSecond, errors, p50Millis, p99Millis, p999Millis }: Sample): void {
  const rate = Math.round(decisionsPerSecond);
  const percentiles = `p50 ${p50Millis.toFixed(1)} ms, p99 ${p99Millis.toFixed(1)} ms, p99.9 ${p999Millis.toFixed(1)} ms`;
  console.log(`${what.padEnd(40)} ${rate} decisions/s, ${percentiles}, ${errors} errors`);
}

export async function measureBeside(running: Running, options: BesideOptions): Promise<void> {
  const cluster = await QuorateCluster.start(running);
  say('nothing else', await load(cluster, running, options));
  const until = { aborted: false };
  const changing = changeRules(cluster, until);
  const changed = await load(cluster, running, options);
  until.aborted = true;
  say(`${await changing} changes of the rules`, changed);

  await cluster.kill(SLOW_NODE);
  const ports = cluster.config.nodes.map(({ peer }) => peer.port).join();
  cluster.startNode(SLOW_NODE, ([node = '', ...args]) => [
    '/usr/bin/env',
    `SLOW_FOLLOWER_MILLIS=${SLOW_MILLIS}`,
    `SLOW_FOLLOWER_PORTS=${ports}`,
    node,
    '--import',
    SLOW_FOLLOWER,
    ...args,
  ]);
  await sleep(WARM_UP_MILLIS);
  say(`node ${SLOW_NODE} answers ${SLOW_MILLIS} ms later`, await load(cluster, running, options));
  await cluster.stop();
}
