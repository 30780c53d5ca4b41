/**
 * The command `npm run clients`: clients of other languages ask a cluster of three nodes, and the programs of
 * `docs/languages/` run in every situation that a reader may meet.
 */
import { Command, InvalidArgumentError } from 'commander';
import { Redis } from 'ioredis';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { EXAMPLES } from './examples.ts';
import { PROGRAMS } from './programs.ts';
import { checkedExample } from './run-example.ts';
import { checked, type Findings } from './run.ts';
import { Situations } from './situations.ts';
import { tableOf } from './table.ts';

const NAMES = [...PROGRAMS.map(({ name }) => name), ...EXAMPLES.map(({ file }) => file)];
const RULES = [{ id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' }] as const;

const options = new Command('clients')
  .description(
    'Asks a cluster with redis-py, redis-rb, phpredis, Predis, hiredis and redigo, and by the programs of docs/languages/. Installs their Debian packages if it may.',
  )
  .option('--only <names>', 'only these clients or programs, separated by commas', named)
  .option('--no-install', 'skips clients whose packages are missing')
  .parse()
  .opts<{ readonly only?: readonly string[]; readonly install: boolean }>();

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function named(text: string): readonly string[] {
  const names = text.split(',');
  if (names.every((name) => NAMES.includes(name))) return names;
  throw new InvalidArgumentError(`must be of ${NAMES.join(', ')}`);
}

/** Waits until all nodes have slots: cluster clients find only those. */
async function isWhole(port: number): Promise<true | undefined> {
  const client = new Redis(port, '127.0.0.1');
  try {
    const info = await client.cluster('INFO');
    return info.includes('cluster_slots_assigned:16384') || undefined;
  } finally {
    client.disconnect();
  }
}

function isAsked(name: string): boolean {
  return options.only?.includes(name) ?? true;
}

async function clientsSeen(): Promise<readonly Findings[]> {
  const programs = PROGRAMS.filter(({ name }) => isAsked(name));
  if (programs.length === 0) return [];
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
    return all;
  } finally {
    await cluster.stop();
  }
}

async function examplesSeen(): Promise<readonly Findings[]> {
  const examples = EXAMPLES.filter(({ file }) => isAsked(file));
  if (examples.length === 0) return [];
  const situations = await Situations.start();
  try {
    const all: Findings[] = [];
    for (const example of examples) {
      print(`${example.file} ...`);
      all.push(await checkedExample(example, situations.all, options.install));
    }
    return all;
  } finally {
    await situations.stop();
  }
}

const { lines, hasFailed } = tableOf([...(await clientsSeen()), ...(await examplesSeen())]);
for (const line of lines) print(line);
process.exitCode = hasFailed ? 1 : 0;
