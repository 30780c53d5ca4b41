/**
 * Measures what five modest clients still get beside a greedy one. Each has its own loopback address, so nodes see it
 * as a client.
 */
import { Latencies } from '../load/latencies.ts';
import type { LoadResult } from '../load/load-job.ts';
import { RESP_FORM } from '../peers/quorate.ts';
import { bestOf, load, type OverloadInit, percent, rateOf, SETTLE_MILLIS } from './goodput.ts';

const GREEDY = ['127.0.0.2'];
const MODEST = ['127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7'];
const GREEDY_TIMES = 10;
/** Rate of all five modest clients together, as a fraction of the best rate. */
const MODEST_FRACTION = 0.25;
/** Connections of one client to each node. */
const CONNECTIONS = 2;

async function ask(
  init: OverloadInit,
  localAddresses: readonly string[],
  requestsPerSecond: number,
): Promise<LoadResult> {
  const { cluster, measuredMillis } = init;
  return load(init, {
    kind: 'resp-open-loop',
    form: RESP_FORM,
    workload: 'grants',
    seed: 3,
    addresses: cluster.resp,
    localAddresses,
    connections: CONNECTIONS * cluster.resp.length * localAddresses.length,
    warmUpMillis: SETTLE_MILLIS,
    measuredMillis,
    requestsPerSecond: Math.round(requestsPerSecond),
  });
}

function say(who: string, wanted: number, result: LoadResult): void {
  const latencies = Latencies.decode(result.latencies);
  const rate = rateOf(result);
  console.log(
    `${who}: wanted ${Math.round(wanted)}/s, got ${Math.round(rate)}/s = ${percent(rate / wanted)}, ` +
      `p99 ${latencies.percentileMillis(99).toFixed(1)} ms, refused ${Math.round(result.errors / result.seconds)}/s`,
  );
}

export async function measureFairness(init: OverloadInit): Promise<void> {
  const best = await bestOf(init, 'resp');
  const modest = best * MODEST_FRACTION;
  say('fairness, five modest clients alone', modest, await ask(init, MODEST, modest));
  const greedy = best * GREEDY_TIMES;
  const [ofModest, ofGreedy] = await Promise.all([ask(init, MODEST, modest), ask(init, GREEDY, greedy)]);
  say('fairness, five modest clients beside a greedy one', modest, ofModest);
  say('fairness, the greedy one', greedy, ofGreedy);
}
