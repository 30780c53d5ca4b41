/** What latency users see at a fixed rate, while nothing, a change of the rules, snapshots, or a slow follower goes on beside it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Address } from '../load/load-job.ts';
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
const FILL_BATCH = 1_000;
/** Between two snapshots of all. */
const SAVE_EVERY_MILLIS = 5_000;

export interface BesideOptions {
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** Keys of all partitions together that snapshots are taken of. */
  readonly users: number;
}

/** Until it is aborted, one change after the other. Returns how many were answered with success. */
async function changeRules(cluster: QuorateCluster, until: { readonly aborted: boolean }): Promise<number> {
  const [first = { host: '', port: 0 }] = cluster.http;
  const [unnamed] = cluster.config.rules.rules;
  let changes = 0;
  for (let i = 0; !until.aborted; i += 1) {
    const named = Object.entries(LOAD_RULES).map(([id, rule]) => ({
      id,
      ...rule,
      limit: rule.limit - (i % 2),
      clock: 'cluster',
    }));
    const { status } = await fetch(urlOf(first, '/v1/rules'), {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ rules: [unnamed, ...named] }),
    });
    if (status === 200) changes += 1;
    await sleep(CHANGE_EVERY_MILLIS);
  }
  return changes;
}

async function post(address: Address, path: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(urlOf(address, path), { method: 'POST', headers, body: JSON.stringify(body) });
}

function urlOf({ host, port }: Address, path: string): string {
  return `http://${host}:${port}${path}`;
}

/** So many users are granted something that stays for as long as this runs. */
async function fill({ http }: QuorateCluster, users: number): Promise<void> {
  const write = async (address: Address, from: number): Promise<void> => {
    for (let user = from; user < users; user += http.length * FILL_BATCH) {
      const count = Math.min(FILL_BATCH, users - user);
      const requests = Array.from({ length: count }, (_, i) => ({
        userId: `kept-${user + i}`,
        rule: 'spent',
      }));
      const response = await post(address, '/v1/allow/batch', { requests });
      if (!response.ok)
        throw new Error(`users were not granted: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(http.map((address, i) => write(address, i * FILL_BATCH)));
}

/** Again and again a backup of one partition after the other, which is a snapshot at its leader. Returns how many were read to their end. */
async function backUp(
  { http, config }: QuorateCluster,
  until: { readonly aborted: boolean },
): Promise<number> {
  let read = 0;
  for (; !until.aborted; await sleep(SAVE_EVERY_MILLIS)) {
    for (let group = 1; group <= config.partitions && !until.aborted; group += 1) {
      for (const address of http) {
        const response = await fetch(urlOf(address, `/v1/backup/${group}`));
        // Who does not lead says so.
        const bytes = await response.arrayBuffer().catch(() => undefined);
        if (response.ok && bytes !== undefined) read += 1;
      }
    }
  }
  return read;
}

/** By as many requests as it answers, so that nothing waits when the clock starts. */
async function warmUp(cluster: QuorateCluster, running: Running): Promise<void> {
  await measure(
    {
      kind: 'http',
      batch: 1,
      workload: 'grants',
      seed: 1,
      addresses: cluster.http,
      connections: CONNECTIONS,
      warmUpMillis: WARM_UP_MILLIS,
      measuredMillis: 1_000,
    },
    { pids: cluster.pids, stop: async () => undefined },
    running,
  );
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
  await warmUp(cluster, running);
  say('nothing else', await load(cluster, running, options));
  const until = { aborted: false };
  const changing = changeRules(cluster, until);
  const changed = await load(cluster, running, options);
  until.aborted = true;
  say(`${await changing} changes of the rules`, changed);

  await fill(cluster, options.users);
  const untilSaved = { aborted: false };
  const saving = backUp(cluster, untilSaved);
  const saved = await load(cluster, running, options);
  untilSaved.aborted = true;
  say(`${await saving} snapshots, ${options.users} keys in all`, saved);

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
