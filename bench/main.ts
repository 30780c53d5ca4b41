/**
 * `npm run bench`: grants and denials of a local three-node cluster, in turn with a bare Fastify route in the same
 * run, as medians and ratios. Absolute numbers say more about the machine than about Quorate.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { startNodeProcess, stopNodeProcess, waitUntilReady } from '../cluster/processes.ts';
import { createCluster, localConfig } from '../src/config/cluster-directory.ts';
import { integerOption } from '../src/cli/options.ts';
import { measure, type Measurement, median, type Workload } from './workload.ts';

interface BenchOptions {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly users: number;
  readonly basePort: number;
}

const SATURATED_USERS = 16;
const HOURLY = { id: 'hourly', limit: 1, windowMillis: 3_600_000, clock: 'cluster' } as const;

async function main(options: BenchOptions): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'quorate-bench-'));
  const bare = fork(fileURLToPath(new URL('peers/http-service.js', import.meta.url)), ['bare']);
  const local = localConfig({
    nodes: 3,
    partitions: 16,
    limit: 1_000_000,
    windowMillis: 60_000,
    basePort: options.basePort,
  });
  // The denied users share the cluster with the granted ones, under a rule whose window outlasts the bench.
  const config = { ...local, rules: { ...local.rules, rules: [...local.rules.rules, HOURLY] } };
  await createCluster(directory, config);
  const nodes = config.nodes.map(({ id }) => startNodeProcess(directory, id));
  try {
    const [barePort] = (await once(bare, 'message')) as [number];
    const bareUrl = `http://127.0.0.1:${barePort}`;
    await waitUntilReady(config, 30_000);
    const urls = config.nodes.map(({ http }) => `http://${http.host}:${http.port}`);
    await saturate(urls[0] ?? '');
    const granted = (i: number): { userId: string; rule: string } => ({
      userId: `user-${i % options.users}`,
      rule: 'default',
    });
    const denied = (i: number): { userId: string; rule: string } => ({
      userId: `full-${i % SATURATED_USERS}`,
      rule: HOURLY.id,
    });
    await report(options, [
      { name: 'bare fastify route', urls: [bareUrl], body: granted, expectedStatus: 200 },
      { name: 'grants, 3 nodes', urls, body: granted, expectedStatus: 200 },
      { name: 'denials, 3 nodes', urls, body: denied, expectedStatus: 429 },
    ]);
  } finally {
    bare.kill();
    await Promise.all(nodes.map((node) => stopNodeProcess(node)));
    await rm(directory, { recursive: true, force: true });
  }
}

/** Uses up the budget of the users that are to be denied. */
async function saturate(url: string): Promise<void> {
  for (let i = 0; i < SATURATED_USERS; i += 1) {
    const response = await fetch(`${url}/v1/allow`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ userId: `full-${i}`, rule: HOURLY.id }),
    });
    if (response.status !== 200) throw new Error(`could not saturate full-${i}: ${response.status}`);
  }
}

async function report(options: BenchOptions, workloads: readonly Workload[]): Promise<void> {
  const { rounds, seconds, connections } = options;
  console.log(
    `${rounds} rounds of ${seconds} s each, ${connections} connections, ${options.users} users, in turn`,
  );
  for (const workload of workloads) await measure(workload, { seconds: 1, connections });
  const measured = new Map<string, Measurement[]>(workloads.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const workload of workloads) {
      const result = await measure(workload, { seconds, connections });
      measured.get(workload.name)?.push(result);
      console.log(`  round ${round}: ${describe(result)}`);
    }
  }
  const [yardstick] = workloads;
  const reference = median((measured.get(yardstick?.name ?? '') ?? []).map((m) => m.requestsPerSecond));
  console.log('\nmedians');
  let unexpected = 0;
  for (const [name, results] of measured) {
    const rate = median(results.map((m) => m.requestsPerSecond));
    const p50 = median(results.map((m) => m.p50Millis));
    const p99 = median(results.map((m) => m.p99Millis));
    unexpected += results.reduce((sum, m) => sum + m.unexpected, 0);
    const ratio = (rate / reference).toFixed(2);
    console.log(`  ${name.padEnd(20)} ${row(rate, p50, p99)}  ${ratio} x bare`);
  }
  if (unexpected > 0)
    throw new Error(`${unexpected} answers had an unexpected status: the numbers mean nothing`);
}

function describe(m: Measurement): string {
  return `${m.name.padEnd(20)} ${row(m.requestsPerSecond, m.p50Millis, m.p99Millis)}`;
}

function row(rate: number, p50: number, p99: number): string {
  return `${String(Math.round(rate)).padStart(7)} req/s  p50 ${p50} ms  p99 ${p99} ms`;
}

const program = new Command('npm run bench --')
  .description('Measure grants and denials of a local cluster against a bare Fastify route.')
  .option('--seconds <n>', 'length of one run', integerOption, 5)
  .option('--rounds <n>', 'runs of each workload', integerOption, 3)
  .option('--connections <n>', 'HTTP connections', integerOption, 48)
  .option('--users <n>', 'different users', integerOption, 10_000)
  .option('--base-port <n>', 'ports of the cluster, as in npm start', integerOption, 18_300)
  .action(main);

program.parseAsync().catch((error: unknown) => {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
