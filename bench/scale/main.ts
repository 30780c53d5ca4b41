/**
 * `npm run bench:scale`: measures what a rate does not show: idle partitions, failovers, latency beside other work,
 * restarts, memory.
 */
import { Command, Option } from 'commander';
import { integerFrom } from '../../src/cli/options.ts';
import { runProgram, Running } from '../running.ts';
import { BESIDE_LISTENERS, type BesideListener, measureBeside } from './beside.ts';
import { measureFailover } from './failover.ts';
import { measureIdle } from './idle.ts';
import { measureMemory } from './memory.ts';
import { measureRestart } from './restart.ts';

const running = new Running();
const positive = integerFrom(1, 10_000_000);

interface BesideCommand {
  readonly listener: readonly BesideListener[];
  readonly rate?: number;
  readonly seconds: number;
  readonly users: number;
}

async function withCluster(measure: () => Promise<void>): Promise<void> {
  try {
    await measure();
  } finally {
    running.endAll();
  }
}

const program = new Command('npm run bench:scale --').description(
  'Measure what grows with partitions, logs and users, and what a failover takes.',
);
program
  .command('idle')
  .description('processor time of an idle cluster')
  .option('--partitions <n...>', 'numbers of partitions, one cluster for each', ['16', '256', '1024'])
  .option('--seconds <n>', 'measured seconds', positive, 10)
  .action(async ({ partitions, seconds }: { partitions: string[]; seconds: number }) =>
    withCluster(async () => measureIdle(running, { partitions: partitions.map(positive), seconds })),
  );
program
  .command('failover')
  .description('time to the first grant after SIGKILL of the leader')
  .option('--kills <n>', 'how many', positive, 30)
  .action(async ({ kills }: { kills: number }) => withCluster(async () => measureFailover(running, kills)));
program
  .command('beside')
  .description(
    'latency at half of what can be decided, beside changes of the rules, snapshots and a slow follower',
  )
  .addOption(
    new Option('--listener <listener...>', 'listeners to measure')
      .choices(BESIDE_LISTENERS)
      .default(BESIDE_LISTENERS),
  )
  .option('--rate <n>', 'requests per second, instead of half of the best rate', positive)
  .option('--seconds <n>', 'measured seconds of each', positive, 60)
  .option('--users <n>', 'keys in the snapshots', positive, 1_000_000)
  .action(async ({ rate, listener, ...options }: BesideCommand) =>
    withCluster(async () =>
      measureBeside(running, {
        listeners: listener,
        ...(rate !== undefined && { requestsPerSecond: rate }),
        ...options,
      }),
    ),
  );
program
  .command('restart')
  .description('time of a restart of a node with full logs')
  .option('--seconds <n>', 'seconds of load before the restart', positive, 40)
  .option('--partitions <n>', 'how many', positive, 16)
  .action(async ({ seconds, partitions }: { seconds: number; partitions: number }) =>
    withCluster(async () => measureRestart(running, seconds, partitions)),
  );
program
  .command('memory')
  .description('bytes per key and grant; exact with node --expose-gc')
  .option('--users <n>', 'how many', positive, 1_000_000)
  .option('--grants <n>', 'grants of each user, at least 2', integerFrom(2, 1_000), 10)
  .action(({ users, grants }: { users: number; grants: number }) => measureMemory(users, grants));

runProgram(program, running);
