/**
 * `npm run bench:client`: compares `@quorate/client` with plain HTTP requests over kept connections. Both ask for the
 * same grants with the same number of callers, in turn. It also counts how many of the client's requests went straight
 * to the leader of their partition; the decisions say which node answered.
 */
import { Command } from 'commander';
import { integerFrom } from '../../src/cli/options.ts';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import { runProgram, Running } from '../running.ts';
import { type Measured, measureClient, measureSinglePosts } from './callers.ts';

interface ClientBenchOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUp: number;
  readonly callers: number;
}

const running = new Running();
const positive = integerFrom(1, 10_000);

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function row(name: string, { granted, others, perSecond, processorMillis }: Measured): string {
  const micros = ((processorMillis * 1_000) / Math.max(1, granted)).toFixed(0);
  return `${name.padEnd(14)} ${perSecond.toFixed(0).padStart(8)} grants/s ${micros.padStart(6)} µs of this process each, ${others} others`;
}

async function run({ rounds, seconds, warmUp, callers }: ClientBenchOptions): Promise<void> {
  const cluster = await QuorateCluster.start(running);
  const asked = { cluster, callers };
  try {
    await measureSinglePosts({ ...asked, millis: warmUp * 1_000 });
    await measureClient({ ...asked, millis: warmUp * 1_000 });
    const ratios: number[] = [];
    const fractions: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const millis = seconds * 1_000;
      const single = await measureSinglePosts({ ...asked, millis });
      const client = await measureClient({ ...asked, millis });
      console.log(row('single posts', single));
      console.log(row('the client', client));
      ratios.push(client.perSecond / single.perSecond);
      fractions.push(client.straight);
    }
    const ratio = median(ratios);
    const fraction = median(fractions);
    console.log(`grants/s of the client over those of single posts, ${callers} callers: ${ratio.toFixed(2)}`);
    console.log(
      `requests that went straight to the leader of their partition: ${(100 * fraction).toFixed(1)} %`,
    );
    await cluster.stop();
  } finally {
    running.endAll();
  }
}

const program = new Command('npm run bench:client --')
  .description(
    'Compare @quorate/client with plain HTTP requests: grants per second, and requests that go straight to leaders.',
  )
  .option('--rounds <n>', 'measurements of each, in turn', positive, 3)
  .option('--seconds <n>', 'seconds of each measurement', positive, 5)
  .option('--warm-up <n>', 'seconds of load before each measurement', positive, 5)
  .option('--callers <n>', 'callers, each with one request at a time', positive, 256)
  .action(run);

runProgram(program, running);
