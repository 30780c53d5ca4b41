/** Closed-loop load over HTTP by autocannon: each connection sends the next request when the last one is answered. */
import { EventEmitter, once } from 'node:events';
import autocannon, { type Client, type Instance, type Request } from 'autocannon';
import { type KeyChooser, type LoadRequest, workloadOf } from '../workloads.ts';
import type { Address, HttpJob, LoadResult } from './load-job.ts';
import { type Counts, Measurement } from './measurement.ts';

/** Bounded, because autocannon needs much more memory for a request than its text. */
const REQUESTS_PER_CONNECTION_MAX = 4_096;
const FRACTION_OF_DRAWN = 1 / 4;
const GRANTED = '"allowed":true';

export const ALLOW_PATH = '/v1/allow';
export const BATCH_PATH = '/v1/allow/batch';

/** Encodes the body of one request for a grant. */
export function allowBody({ key, rule }: LoadRequest): string {
  return JSON.stringify({ userId: key, rule });
}

function drawRequests(next: KeyChooser, count: number, { batch, token }: HttpJob): Request[] {
  return Array.from({ length: count }, () => {
    const bodies = Array.from({ length: batch }, () => allowBody(next()));
    return {
      method: 'POST',
      path: batch === 1 ? ALLOW_PATH : BATCH_PATH,
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: batch === 1 ? (bodies[0] ?? '') : `{"requests":[${bodies.join(',')}]}`,
    };
  });
}

/** Counts the occurrences of `part` in `text`. */
function occurrences(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

class HttpCounts {
  grants = 0;
  denials = 0;
  errors = 0;

  get now(): Counts {
    return { grants: this.grants, denials: this.denials, errors: this.errors };
  }

  single(status: number): void {
    if (status === 200) this.grants += 1;
    else if (status === 429) this.denials += 1;
    else this.errors += 1;
  }

  batch(status: number, body: string, size: number): void {
    if (status !== 200) {
      this.errors += size;
      return;
    }
    const granted = occurrences(body, GRANTED);
    this.grants += granted;
    this.denials += size - granted;
  }
}

function start(
  job: HttpJob,
  address: Address,
  next: KeyChooser,
  counts: HttpCounts,
  ended: (error: unknown) => void,
): Instance {
  const { batch, addresses, connections, warmUpMillis, measuredMillis, workload } = job;
  const drawn = (workloadOf(workload).requestsDrawn * FRACTION_OF_DRAWN) / batch;
  const perConnection = Math.min(REQUESTS_PER_CONNECTION_MAX, Math.ceil(drawn / connections));
  const options = {
    // autocannon accepts any certificate.
    url: `${job.token === undefined ? 'http' : 'https'}://${address.host}:${address.port}`,
    connections: Math.max(1, Math.round(connections / addresses.length)),
    // `stop` ends it after the measurement; this duration must only be longer.
    duration: Math.ceil((warmUpMillis + measuredMillis) / 1_000) + 60,
    setupClient(client: Client) {
      const requests = drawRequests(next, perConnection, job);
      const onResponse = (status: number, body: string): void => counts.batch(status, body, batch);
      client.setRequests(batch === 1 ? requests : requests.map((each) => ({ ...each, onResponse })));
    },
  };
  return autocannon(options, ended);
}

/**
 * Runs the load.
 *
 * @param measuring called when the load is warm and counting begins
 * @throws if autocannon cannot run
 */
export async function httpLoad(job: HttpJob, measuring: () => void): Promise<LoadResult> {
  const counts = new HttpCounts();
  const measurement = new Measurement({ ...job, measuring });
  const next = workloadOf(job.workload).chooser(job.seed);
  const ended = (error: unknown): void =>
    measurement.fail(error instanceof Error ? error : new Error('autocannon ended too early'));
  const runs = job.addresses.map((address) => start(job, address, next, counts, ended));
  for (const run of runs) {
    run.on('response', (_client, status, _bytes, millis) => {
      if (job.batch === 1) counts.single(status);
      measurement.latencies?.record(millis);
    });
    run.on('reqError', () => {
      counts.errors += job.batch;
    });
  }
  try {
    // autocannon first encodes all requests, which is not part of the load.
    await measurement.unlessFailed(once(runs[0] ?? new EventEmitter(), 'response'));
    return await measurement.run(() => counts.now);
  } finally {
    for (const run of runs) run.stop();
  }
}
