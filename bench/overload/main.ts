/**
 * `npm run bench:overload`: measures how many decisions an overloaded cluster still makes, and how fast. First it finds
 * the best rate with closed loops; then it sends one to ten times that rate.
 */
import { Command } from 'commander';
import { integerFrom } from '../../src/cli/options.ts';
import { measureFairness } from './fairness.ts';
import { measureOverload } from './goodput.ts';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import { runProgram, Running } from '../running.ts';

interface OverloadOptions {
  readonly seconds: number;
  readonly warmUp: number;
  readonly times: readonly string[];
  readonly only?: readonly string[];
}

const PARTS = ['resp', 'http', 'fairness'] as const;
const running = new Running();
const positive = integerFrom(1, 10_000);

async function run({ seconds, warmUp, times, only = PARTS }: OverloadOptions): Promise<void> {
  const cluster = await QuorateCluster.start(running);
  const measured = {
    cluster,
    running,
    measuredMillis: seconds * 1_000,
    warmUpMillis: warmUp * 1_000,
    times: times.map(positive),
  };
  try {
    if (only.includes('resp')) await measureOverload('resp', measured);
    if (only.includes('fairness')) await measureFairness(measured);
    if (only.includes('http')) await measureOverload('http', measured);
    await cluster.stop();
  } finally {
    running.endAll();
  }
}

const program = new Command('npm run bench:overload --')
  .description('Measure how many decisions three overloaded nodes still make.')
  .option('--seconds <n>', 'measured seconds of each rate', positive, 5)
  .option('--warm-up <n>', 'seconds of load before the first measurement', positive, 8)
  .option('--times <n...>', 'rates, as multiples of the best rate', ['1', '2', '5', '10'])
  .option('--only <part...>', `some of ${PARTS.join(', ')}`)
  .action(run);

runProgram(program, running);
