/**
 * HTTP load at a fixed rate, through all nodes in turn. The latency of a request counts from the time it was due.
 * Otherwise a server that stalls would get fewer requests, and the stall would hardly show ("coordinated omission").
 */
import { Agent, request } from 'node:http';
import { Agent as SecureAgent, request as requestSecurely } from 'node:https';
import { type LoadRequest, workloadOf } from '../workloads.ts';
import { ALLOW_PATH, allowBody } from './http-load.ts';
import type { Address, LoadResult, OpenLoopJob } from './load-job.ts';
import { type Counts, Measurement } from './measurement.ts';

/** Interval at which due requests are sent. */
const STEP_MILLIS = 1;
/**
 * The maximum number of unanswered requests. Beyond that a due request is an error at once: the server is far
 * behind.
 */
const OPEN_MAX = 20_000;

class OpenLoop {
  grants = 0;
  denials = 0;
  errors = 0;
  readonly #measurement: Measurement;
  readonly #agent: Agent;
  readonly #token: string | undefined;
  #open = 0;
  #isClosed = false;

  constructor(measurement: Measurement, connectionsPerAddress: number, { token }: OpenLoopJob) {
    const options = { keepAlive: true, maxSockets: connectionsPerAddress, scheduling: 'fifo' } as const;
    this.#measurement = measurement;
    this.#token = token;
    this.#agent =
      token === undefined ? new Agent(options) : new SecureAgent({ ...options, rejectUnauthorized: false });
  }

  get counts(): Counts {
    return { grants: this.grants, denials: this.denials, errors: this.errors };
  }

  /** Sends one request. @param intendedMillis when it was due, by `performance.now()` */
  send({ host, port }: Address, what: LoadRequest, intendedMillis: number): void {
    if (this.#open >= OPEN_MAX) {
      this.errors += 1;
      return;
    }
    this.#open += 1;
    const body = allowBody(what);
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
    };
    const ask = this.#token === undefined ? request : requestSecurely;
    const sent = ask({ agent: this.#agent, host, port, path: ALLOW_PATH, method: 'POST', headers });
    sent.once('response', (response) => {
      response.resume();
      response.once('end', () => this.#answered(response.statusCode ?? 0, intendedMillis));
    });
    sent.once('error', () => this.#answered(0, intendedMillis));
    sent.end(body);
  }

  #answered(status: number, intendedMillis: number): void {
    this.#open -= 1;
    if (this.#isClosed) return;
    if (status === 200) this.grants += 1;
    else if (status === 429) this.denials += 1;
    else this.errors += 1;
    this.#measurement.latencies?.record(performance.now() - intendedMillis);
  }

  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
  }
}

/** Runs the load. @param measuring called when the load is warm and counting begins */
export async function openLoop(job: OpenLoopJob, measuring: () => void): Promise<LoadResult> {
  const { addresses, connections, requestsPerSecond, workload, seed } = job;
  const next = workloadOf(workload).chooser(seed);
  const measurement = new Measurement({ ...job, measuring });
  const loop = new OpenLoop(measurement, Math.ceil(connections / addresses.length), job);
  const startMillis = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    // The first one is due at the start.
    const due = 1 + Math.floor(((performance.now() - startMillis) * requestsPerSecond) / 1_000);
    for (; sent < due; sent += 1) {
      const address = addresses[sent % addresses.length];
      if (address !== undefined) loop.send(address, next(), startMillis + (sent * 1_000) / requestsPerSecond);
    }
  }, STEP_MILLIS);
  try {
    return await measurement.run(() => loop.counts);
  } finally {
    clearInterval(timer);
    loop.close();
  }
}
