/** The command `npm run clients`: clients of other languages ask a cluster of three nodes, each as its users would write it. */
import { Command, InvalidArgumentError } from 'commander';
import { Redis } from 'ioredis';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { PROGRAMS, type Program } from './programs.ts';
import { checked, type Findings } from './run.ts';
import { tableOf } from './table.ts';

const RULES = [{ id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' }] as const;

const options = new Command('clients')
  .description(
    'Asks a cluster with redis-py, redis-rb, phpredis, Predis, hiredis and redigo. Installs their Debian packages if it may.',
  )
  .option('--only <names>', 'only these clients, separated by commas', named)
  .option('--no-install', 'skips what is not here')
  .parse()
  .opts<{ readonly only?: readonly Program[]; readonly install: boolean }>();

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function named(names: string): readonly Program[] {
  return names.split(',').map((name) => {
    const program = PROGRAMS.find((one) => one.name === name);
    if (program !== undefined) return program;
    throw new InvalidArgumentError(`must be of ${PROGRAMS.map((one) => one.name).join(', ')}`);
  });
}

/** Clients of a cluster find those nodes alone that have slots. */
async function isWhole(port: number): Promise<true | undefined> {
  const client = new Redis(port, '127.0.0.1');
  try {
    const info = await client.cluster('INFO');
    return info.includes('cluster_slots_assigned:16384') || undefined;
  } finally {
    client.disconnect();
  }
}

const programs = options.only ?? PROGRAMS;
const cluster = await InProcessCluster.create({ rules: RULES, partitions: 8, resp: true });
try {
  await cluster.startAll();
  const ports = cluster.config.nodes.map(({ resp }) => resp?.port ?? 0);
  for (const port of ports) await eventually('all slots have a leader', () => isWhole(port));
  const all: Findings[] = [];
  for (const [i, program] of programs.entries()) {
    print(`${program.name} ...`);
    all.push(await checked(program, ports[i % ports.length] ?? 0, options.install));
  }
  const { lines, hasFailed } = tableOf(all);
  for (const line of lines) print(line);
  process.exitCode = hasFailed ? 1 : 0;
} finally {
  await cluster.stop();
}
