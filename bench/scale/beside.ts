/**
 * Measures latency at half of the cluster's best rate, first undisturbed, then during changes of the rules, during
 * snapshots, and with a slow follower. The best rate is measured first, in the same run and through the same listener.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Address, LoadJob } from '../load/load-job.ts';
import { measure, type Sample } from '../measure.ts';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import { RESP_FORM } from '../peers/quorate.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES } from '../workloads.ts';

const SLOW_FOLLOWER = fileURLToPath(new URL('slow-follower.js', import.meta.url));
const SLOW_MILLIS = 500;
const SLOW_NODE = 3;
const WARM_UP_MILLIS = 15_000;
const COMMON = {
  workload: 'grants',
  seed: 1,
  connections: 64,
  warmUpMillis: WARM_UP_MILLIS,
} as const;
const CAPACITY_MILLIS = 5_000;
/** Changes in one measurement. */
const RULES_CHANGES = 20;
const FILL_BATCH = 1_000;
/** Interval between two rounds of snapshots. */
const SAVE_EVERY_MILLIS = 5_000;

export const BESIDE_LISTENERS = ['http', 'resp'] as const;
export type BesideListener = (typeof BESIDE_LISTENERS)[number];

export interface BesideOptions {
  readonly listeners: readonly BesideListener[];
  /** Absent: half of the best rate. */
  readonly requestsPerSecond?: number;
  readonly seconds: number;
  /** Keys in the snapshots, all partitions together. */
  readonly users: number;
}

interface Until {
  readonly aborted: boolean;
}

/** Changes the rules again and again until aborted. Returns the number of successful changes. */
async function changeRules(cluster: QuorateCluster, everyMillis: number, until: Until): Promise<number> {
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
    await sleep(everyMillis);
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

/** Fills the state: each user gets a grant that lasts for the whole run. */
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

/**
 * Backs up one partition after the other until aborted; a backup takes a snapshot at the leader. Returns the number of
 * complete backups.
 */
async function backUp({ http, config }: QuorateCluster, until: Until): Promise<number> {
  let read = 0;
  for (; !until.aborted; await sleep(SAVE_EVERY_MILLIS)) {
    for (let group = 1; group <= config.partitions && !until.aborted; group += 1) {
      for (const address of http) {
        const response = await fetch(urlOf(address, `/v1/backup/${group}`));
        // A node that does not lead the partition refuses.
        const bytes = await response.arrayBuffer().catch(() => undefined);
        if (response.ok && bytes !== undefined) read += 1;
      }
    }
  }
  return read;
}

/** A closed loop: each connection sends the next request when the last one is answered. */
function closedJob(listener: BesideListener, addresses: readonly Address[]): LoadJob {
  const common = { ...COMMON, addresses, measuredMillis: CAPACITY_MILLIS };
  if (listener === 'http') return { kind: 'http', ...common, batch: 1 };
  return { kind: 'resp', ...common, form: RESP_FORM, pipeline: 1, isClusterAware: false };
}

interface Rate {
  readonly requestsPerSecond: number;
  readonly measuredMillis: number;
}

/** An open loop: requests at fixed times. */
function openJob(listener: BesideListener, addresses: readonly Address[], rate: Rate): LoadJob {
  const common = { ...COMMON, addresses, ...rate };
  return listener === 'http'
    ? { kind: 'open-loop', ...common }
    : { kind: 'resp-open-loop', ...common, form: RESP_FORM };
}

/** Measures through one listener of a cluster. */
class Beside {
  readonly #cluster: QuorateCluster;
  readonly #running: Running;
  readonly #listener: BesideListener;
  readonly #seconds: number;
  #requestsPerSecond = 0;

  constructor(cluster: QuorateCluster, running: Running, listener: BesideListener, seconds: number) {
    this.#cluster = cluster;
    this.#running = running;
    this.#listener = listener;
    this.#seconds = seconds;
  }

  /** Warms the cluster up and chooses the rate. */
  async begin(requestsPerSecond: number | undefined): Promise<void> {
    const sample = await this.#measured(closedJob(this.#listener, this.#cluster[this.#listener]));
    this.#requestsPerSecond = requestsPerSecond ?? Math.round(sample.decisionsPerSecond / 2);
    say(`${this.#listener}, as fast as it goes`, sample);
  }

  /** Sends that rate while `work` runs, which returns a description of itself. Clients avoid the slow node. */
  async during(work: (until: Until) => Promise<string>, slowNode?: number): Promise<void> {
    const until = { aborted: false };
    const worked = work(until);
    const addresses = this.#cluster[this.#listener].filter((_, i) => i + 1 !== slowNode);
    const rate = { requestsPerSecond: this.#requestsPerSecond, measuredMillis: this.#seconds * 1_000 };
    const sample = await this.#measured(openJob(this.#listener, addresses, rate));
    until.aborted = true;
    say(`${this.#listener}, ${await worked}`, sample);
  }

  async #measured(job: LoadJob): Promise<Sample> {
    return measure(job, { pids: this.#cluster.pids, stop: async () => undefined }, this.#running);
  }
}

function say(what: string, sample: Sample): void {
  const { decisionsPerSecond, errors, p50Millis, p99Millis, p999Millis, maxMillis } = sample;
  const millis = [p50Millis, p99Millis, p999Millis, maxMillis].map((each) => each.toFixed(1)).join(', ');
  const rate = Math.round(decisionsPerSecond);
  console.log(`${what.padEnd(44)} ${rate}/s, p50, p99, p99.9 and max ${millis} ms, ${errors} errors`);
}

async function besideOneListener(
  running: Running,
  listener: BesideListener,
  options: BesideOptions,
): Promise<void> {
  const cluster = await QuorateCluster.start(running);
  const { seconds, users, requestsPerSecond } = options;
  const beside = new Beside(cluster, running, listener, seconds);
  await beside.begin(requestsPerSecond);
  await beside.during(async () => 'nothing else');
  const changeEveryMillis = (WARM_UP_MILLIS + seconds * 1_000) / RULES_CHANGES;
  await beside.during(
    async (until) => `${await changeRules(cluster, changeEveryMillis, until)} changes of the rules`,
  );
  await fill(cluster, users);
  await beside.during(async (until) => `${await backUp(cluster, until)} snapshots, ${users} keys in all`);
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
  await beside.during(async () => `node ${SLOW_NODE} answers ${SLOW_MILLIS} ms later`, SLOW_NODE);
  await cluster.stop();
}

export async function measureBeside(running: Running, options: BesideOptions): Promise<void> {
  for (const listener of options.listeners) await besideOneListener(running, listener, options);
}
