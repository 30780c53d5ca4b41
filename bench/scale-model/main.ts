/**
 * `npm run scale-model`: forecasts the nodes and machines for 100,000, a million and 50 million decisions a second. The
 * simulation uses measured service times and is compared with measured clusters of three and five nodes.
 */
import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { integerOption } from '../../src/cli/options.ts';
import type { BenchResults } from '../report/results.ts';
import { calibrate, foretell, ratesOf } from './calibrate.ts';
import { type Clients, type Forecast, forecast, type Offer, perNodeOf } from './forecast.ts';
import { type Slowness, slowed } from './service-times.ts';
import { reachingOf } from './zipf-users.ts';

interface Options {
  readonly results?: string;
  readonly cores: number;
  readonly nodesPerMachine: number;
  readonly monthlyCost: number;
  readonly perCall: number;
  readonly toLeaders: number;
  readonly exponent: number;
}

const TARGETS = [100_000, 1_000_000, 50_000_000];
const FITTED_NODES = 3;
const ERROR_MAX = 0.2;
/** Limit of each user. A user sends one request a second on average. */
const LIMIT_PER_SECOND = 10;
const WAIT_SECONDS = 1;
const AS_PROFILED: Slowness = { calls: 1, requests: 1, rounds: 1 };

function print(line = ''): void {
  process.stdout.write(`${line}\n`);
}

function fraction(text: string): number {
  const value = Number(text);
  if (!(value >= 0 && value <= 1)) throw new InvalidArgumentError('must be from 0 to 1');
  return value;
}

function amount(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('must be a number above 0');
  return value;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** Fits the model to three nodes, and prints its error for the other rates. */
function fitted(path: string): Slowness {
  const rates = ratesOf(JSON.parse(readFileSync(path, 'utf8')) as BenchResults);
  const slowness = calibrate(rates.filter(({ nodes }) => nodes === FITTED_NODES));
  print('fitted to the rates of three nodes; those of the others are foretold');
  print('nodes  at a time    measured   simulated   error');
  for (const rate of rates) {
    const { perSecond, error } = foretell(rate, slowness);
    const columns = [
      String(rate.nodes).padStart(5),
      String(rate.pipeline).padStart(11),
      whole.format(rate.perSecond).padStart(12),
      whole.format(perSecond).padStart(12),
      `${(error * 100).toFixed(0)} %`.padStart(8),
      Math.abs(error) > ERROR_MAX ? '  more than 20 %' : '',
    ];
    print(columns.join('').trimEnd());
  }
  const { calls, requests, rounds } = slowness;
  print(
    `slower than profiled: calls ${calls.toFixed(2)}, requests ${requests.toFixed(2)}, rounds ${rounds.toFixed(2)}`,
  );
  print();
  return slowness;
}

function lineOf(name: string, { decisionsPerSecond, results, ...rest }: Forecast): string {
  const { none, death, rebalancing } = results;
  return [
    name.padEnd(8),
    whole.format(decisionsPerSecond).padStart(11),
    String(rest.clusters).padStart(9),
    String(rest.clusters * rest.nodesPerCluster).padStart(7),
    String(rest.machines).padStart(10),
    whole.format(rest.monthlyCost).padStart(11),
    none.p50Millis.toFixed(1).padStart(6),
    none.p99Millis.toFixed(1).padStart(7),
    death.p99Millis.toFixed(0).padStart(7),
    rebalancing.p99Millis.toFixed(1).padStart(8),
    `${(none.busyFraction * 100).toFixed(0)} %`.padStart(7),
  ].join('');
}

function main({ results, exponent, ...options }: Options): void {
  const slowness = results === undefined ? AS_PROFILED : fitted(results);
  const offer: Offer = options;
  const clients: Clients = options;
  const world = { offer, clients, times: slowed(slowness) };
  const perNode = perNodeOf(world);
  print(
    `a machine: ${offer.cores} cores, ${offer.nodesPerMachine} nodes, ${offer.monthlyCost} a month; ` +
      `a call: ${clients.perCall} requests, ${clients.toLeaders * 100} % of them at the node that leads`,
  );
  print(`a node decides ${whole.format(perNode)} a second within p99 20 ms and 65 % of its cores`);
  print();
  print('users    decisions/s clusters  nodes  machines  per month   p50    p99  death  moving   busy');
  for (const target of TARGETS) {
    print(lineOf('uniform', forecast(target, perNode, world)));
    const who = { users: target, exponent, limitPerSecond: LIMIT_PER_SECOND, waitSeconds: WAIT_SECONDS };
    const { grantsPerSecond, denialsPerSecond, hottestUserPerSecond } = reachingOf(target, who);
    print(lineOf('zipf', forecast(Math.ceil(grantsPerSecond + denialsPerSecond), perNode, world)));
    print(
      `         of ${whole.format(target)} asked ${whole.format(grantsPerSecond)} are granted, ` +
        `${whole.format(denialsPerSecond)} denied by nodes, the rest by clients that wait; the first user asks ${whole.format(hottestUserPerSecond)}`,
    );
  }
  print();
  print('milliseconds; death: p99 with a node killed; moving: with every node sending and taking snapshots');
}

new Command('npm run scale-model --')
  .description(
    'Forecast nodes, machines and cost for 100,000, a million and 50 million decisions per second.',
  )
  .option('--results <file>', 'results.json of `npm run bench -- --sweep nodes`, to fit service times to')
  .option('--cores <n>', 'cores of a machine', integerOption, 16)
  .option('--nodes-per-machine <n>', 'nodes on each machine', integerOption, 10)
  .option('--monthly-cost <amount>', 'cost of a machine, in any currency', amount, 450)
  .option('--per-call <n>', 'requests in one call of a client', integerOption, 16)
  .option('--to-leaders <share>', 'fraction of calls that go straight to the leader', fraction, 0.9)
  .option('--exponent <number>', 'exponent of the Zipf distribution of users', amount, 1)
  .action(main)
  .parse();
