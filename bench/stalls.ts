/**
 * `npm run bench:stalls`: measures how long one partition with a million users blocks the event loop while it grows,
 * writes a snapshot, reads and restores one, forgets idle users and changes its rules. It measures every piece of work
 * that runs without yielding, and the pauses of the garbage collector: first for the partition alone, then, with
 * `--node`, for a whole node. The first row is plain arithmetic without garbage, about as long as one slice of a
 * restore. Its time above its median comes from the machine and is in every other row, too.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Command } from 'commander';
import type { SnapshotTarget } from '../raft/driver/group-application.ts';
import type { Entry } from '../raft/types.ts';
import { AllowBatchBuilder } from '../src/limiter/log/batch-builder.ts';
import { encodeRules, encodeSweep } from '../src/limiter/log/command.ts';
import { GroupClock } from '../raft/driver/group-clock.ts';
import { PARTITION_BYTES_MAX, type RuleTable, validateRuleTable } from '../src/limiter/rules.ts';
import { integerOption } from '../src/cli/options.ts';
import { Partition } from '../src/partition/partition.ts';
import { nodeStalls } from './node-stalls.ts';
import { PARTITION_DEFAULTS } from '../src/partition/partition-options.ts';

interface StallOptions {
  readonly users: number;
  readonly grants: number;
  readonly ids?: true;
  readonly node?: true;
}

const START_MILLIS = 1_700_000_000_000;
const WINDOW_MILLIS = 3_600_000;
const REQUESTS_PER_ENTRY = 256;
const AIM_MILLIS = 10;

/** Works for about 2 ms without allocating. */
function arithmetic(): number {
  let hash = 1;
  for (let i = 0; i < 2_000_000; i += 1) hash = (Math.imul(hash, 31) + i) | 0;
  return hash;
}

function quantile(sorted: readonly number[], fraction: number): string {
  const at = Math.min(sorted.length - 1, Math.floor(sorted.length * fraction));
  return (sorted[at] ?? 0).toFixed(2).padStart(8);
}

/** Durations of pieces of work of one kind in milliseconds: by the clock, and in processor time of all threads. */
class Slices {
  readonly #wall: number[] = [];
  readonly #processor: number[] = [];

  measure<T>(work: () => T): T {
    const before = process.cpuUsage();
    const startedAt = performance.now();
    const result = work();
    this.add(performance.now() - startedAt);
    const { user, system } = process.cpuUsage(before);
    this.#processor.push((user + system) / 1_000);
    return result;
  }

  add(millis: number): void {
    this.#wall.push(millis);
  }

  row(name: string): string {
    const wall = this.#wall.sort((a, b) => a - b);
    const processor = this.#processor.sort((a, b) => a - b);
    const columns = [0.5, 0.99, 0.999, 1].map((fraction) => quantile(wall, fraction)).join('');
    const totalMillis = processor.reduce((sum, each) => sum + each, 0);
    const slices = String(wall.length).padStart(8);
    return `${name.padEnd(34)}${slices}${columns}${quantile(processor, 1)}${totalMillis.toFixed(0).padStart(9)}`;
  }
}

/** One replica that applies entries without a log. */
class Replica {
  nowMillis = START_MILLIS;
  #index = 0;
  readonly partition: Partition;

  constructor() {
    this.partition = new Partition({
      partition: 0,
      nodeId: 1,
      clock: new GroupClock(
        () => this.nowMillis,
        () => this.nowMillis,
      ),
      options: PARTITION_DEFAULTS,
      monotonicMillis: () => this.nowMillis,
      wallMillis: () => this.nowMillis,
      requestProposal: () => undefined,
      readIndex: () => undefined,
      leaderChanged: () => undefined,
    });
    this.partition.wantRules(tableOf(1));
  }

  entry(data: Uint8Array): Entry {
    this.#index += 1;
    return { index: this.#index, term: 1, timeMillis: this.nowMillis, kind: 'command', data };
  }

  /** An entry with grants to users `from` up to `to`, with request ids if `round` is set. */
  grants(from: number, to: number, round: string | undefined): Entry {
    const builder = new AllowBatchBuilder();
    for (let user = from; user < to; user += 1) {
      const requestId = round === undefined ? undefined : `request-${round}-${user}`;
      builder.add({ userId: `user-${user}`, ...(requestId !== undefined && { requestId }) });
    }
    return this.entry(builder.take());
  }
}

function tableOf(version: number): RuleTable {
  return validateRuleTable({
    version,
    partitionBytesMax: PARTITION_BYTES_MAX,
    requestIdHorizonMillis: WINDOW_MILLIS,
    rules: [{ id: 'default', limit: 1_000 + version, windowMillis: WINDOW_MILLIS, clock: 'cluster' }],
  });
}

/** Runs a piece of work, measures it and prints a row. */
type Phase = (name: string, run: (slices: Slices) => Promise<void> | void) => Promise<void>;

async function main({ users, grants, ids, node }: StallOptions): Promise<void> {
  const pauses: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) pauses.push(duration);
  });
  observer.observe({ entryTypes: ['gc'] });
  const replica = new Replica();
  const { partition } = replica;
  partition.apply(replica.entry(encodeRules(tableOf(1))));
  console.log(`${users} users with ${grants} grants each; a slice should take less than ${AIM_MILLIS} ms`);
  console.log(
    `${'milliseconds'.padEnd(34)}  slices     p50     p99   p99.9     max max cpu  cpu sum   longest gc`,
  );
  const phase: Phase = async (name, run) => {
    const slices = new Slices();
    pauses.length = 0;
    await run(slices);
    await nextTurn();
    const longest = Math.max(0, ...pauses).toFixed(1);
    console.log(`${slices.row(name)}${longest.padStart(13)}`);
  };

  await phase('the machine: arithmetic alone', async (slices) => {
    arithmetic();
    for (let i = 0; i < 600; i += 1) {
      slices.measure(arithmetic);
      await nextTurn();
    }
  });
  await grow(replica, { users, grants, ids: ids === true }, phase);
  console.log(describe(partition));
  const chunks = await snapshot(replica, users, phase);
  await restore(partition, chunks, phase);
  // The old state is released.
  await phase('rule change', (slices) => {
    const entry = replica.entry(encodeRules(tableOf(2)));
    slices.measure(() => partition.apply(entry));
  });
  replica.nowMillis += 2 * WINDOW_MILLIS;
  await phase('forgetting, by sweeps', async (slices) => {
    while (partition.stateBytes > 0) {
      const entry = replica.entry(encodeSweep());
      slices.measure(() => partition.apply(entry));
      await nextTurn();
    }
  });
  if (node === true) {
    await nodeStalls(users, (name, run) => phase(name, (slices) => run((millis) => slices.add(millis))));
  }
  observer.disconnect();
}

async function grow(
  replica: Replica,
  { users, grants, ids }: { readonly users: number; readonly grants: number; readonly ids: boolean },
  phase: Phase,
): Promise<void> {
  await phase('growth, 256 grants a slice', async (slices) => {
    for (let round = 0; round < grants; round += 1) {
      for (let from = 0; from < users; from += REQUESTS_PER_ENTRY) {
        const to = Math.min(users, from + REQUESTS_PER_ENTRY);
        const entry = replica.grants(from, to, ids ? String(round) : undefined);
        slices.measure(() => replica.partition.apply(entry));
        replica.nowMillis += 1;
        await nextTurn();
      }
    }
  });
}

/** Measures a snapshot, first alone and then with grants between its chunks. Returns the chunks of the first. */
async function snapshot(replica: Replica, users: number, phase: Phase): Promise<Uint8Array[]> {
  const { partition } = replica;
  const chunks: Uint8Array[] = [];
  await phase('snapshot', async (slices) => {
    const source = slices.measure(() => partition.snapshot());
    for (;;) {
      const chunk = slices.measure(() => source.next());
      if (chunk === undefined) return;
      chunks.push(chunk);
      await nextTurn();
    }
  });
  await phase('snapshot, with grants meanwhile', async (slices) => {
    const source = slices.measure(() => partition.snapshot());
    for (let chunk: Uint8Array | undefined = chunks[0], i = 0; chunk !== undefined; i += 1) {
      const from = (i * 7_919) % Math.max(1, users - REQUESTS_PER_ENTRY);
      const entry = replica.grants(from, from + REQUESTS_PER_ENTRY, undefined);
      slices.measure(() => partition.apply(entry));
      replica.nowMillis += 1;
      chunk = slices.measure(() => source.next());
      await nextTurn();
    }
  });
  return chunks;
}

async function restore(partition: Partition, chunks: readonly Uint8Array[], phase: Phase): Promise<void> {
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  const meta = { index: 1e9, term: 1, timeMillis: 0, voters: [1], chunkCount: chunks.length, byteLength };
  let target: SnapshotTarget | undefined;
  await phase('restore', async (slices) => {
    const begun = slices.measure(() => partition.restore(meta));
    for (const chunk of chunks) {
      slices.measure(() => begun.add(chunk));
      await nextTurn();
    }
    slices.measure(() => begun.complete());
    target = begun;
  });
  console.log(`${chunks.length} chunks, ${(byteLength / 1e6).toFixed(1)} MB; ${describe(partition)}`);
  await phase('install', async (slices) => {
    slices.measure(() => target?.install());
    target = undefined;
    // Lets the partition release its old state.
    for (let turn = 0; turn < 100; turn += 1) await nextTurn();
  });
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}

function describe(partition: Partition): string {
  const { keys, grants, requestIds } = partition.stats();
  const { rss } = process.memoryUsage();
  const counted = megabytes(partition.stateBytes);
  return `${keys} users, ${grants} runs, ${requestIds} request ids: counted as ${counted}; the process has ${megabytes(rss)}`;
}

const program = new Command('npm run bench:stalls --')
  .description('Measure how long a partition with many users holds the event loop.')
  .option('--users <n>', 'users of the partition', integerOption, 1_000_000)
  .option('--grants <n>', 'grants of each user', integerOption, 1)
  .option('--ids', 'every grant has a request id')
  .option('--node', 'also measure a whole node, with its driver and its database')
  .action(main);

program.parseAsync().catch((error: unknown) => {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
