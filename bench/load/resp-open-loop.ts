/**
 * Load over the Redis protocol at a fixed rate. The latency of a request counts from the time it was due, so it
 * includes the wait in this process while a node does not read. Only decisions count for latency, because nobody waits
 * for a refusal.
 */
import { connect, type Socket } from 'node:net';
import { workloadOf } from '../workloads.ts';
import { type EncodedRequests, encodePipelines, meaningOf } from './encoded-requests.ts';
import type { Address, LoadResult, RespOpenLoopJob } from './load-job.ts';
import { Measurement } from './measurement.ts';
import { type AnswerKind, ReplyCounter, type ReplyMeaning } from './reply-counter.ts';

/** Interval at which due requests are sent. */
const STEP_MILLIS = 2;
const READ_BYTES = 65_536;
/**
 * The maximum number of bytes buffered by a socket beyond what the system accepts. Further due requests wait here,
 * unwritten.
 */
const UNSENT_BYTES_MAX = 1 << 20;
/** Bounded, because larger writes make the steps uneven. */
const REQUESTS_PER_WRITE_MAX = 4_096;

interface ConnectionInit {
  readonly address: Address;
  readonly localAddress: string | undefined;
  readonly meaning: ReplyMeaning;
  /** Pipelines of one request. */
  readonly requests: EncodedRequests;
  readonly first: number;
  readonly millisPerRequest: number;
  /** When the first request is due, by `performance.now()`. */
  readonly startMillis: number;
  readonly measurement: Measurement;
}

class OpenConnection {
  readonly counter: ReplyCounter;
  readonly #init: ConnectionInit;
  readonly #socket: Socket;
  #sent = 0;
  #answered = 0;
  #nowMillis = 0;
  #isClosed = false;

  private constructor(init: ConnectionInit) {
    this.#init = init;
    const { address, localAddress, meaning, measurement } = init;
    this.counter = new ReplyCounter(meaning, (kind) => this.#counted(kind));
    this.#socket = connect({
      ...address,
      ...(localAddress !== undefined && { localAddress }),
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback: (length, buffer) => this.#read(buffer, length),
      },
    });
    const ended = (error?: Error): void => {
      if (!this.#isClosed) measurement.fail(error ?? new Error(`port ${address.port} ended a connection`));
    };
    this.#socket.on('error', ended);
    this.#socket.on('close', () => ended());
  }

  static async open(init: ConnectionInit): Promise<OpenConnection> {
    const connection = new OpenConnection(init);
    await new Promise<void>((resolve, reject) => {
      connection.#socket.once('connect', resolve);
      connection.#socket.once('error', reject);
    });
    return connection;
  }

  /** Number of due requests that are not written yet. */
  unsentAt(nowMillis: number): number {
    return Math.max(0, this.#dueAt(nowMillis) - this.#sent);
  }

  sendDue(nowMillis: number): void {
    const { requests, first } = this.#init;
    let due = Math.min(this.#dueAt(nowMillis) - this.#sent, REQUESTS_PER_WRITE_MAX);
    while (due > 0 && this.#socket.writableLength < UNSENT_BYTES_MAX) {
      const from = (first + this.#sent) % requests.pipelines;
      const count = Math.min(due, requests.pipelines - from);
      this.#socket.write(requests.pipelinesFrom(from, count));
      this.#sent += count;
      due -= count;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #dueAt(nowMillis: number): number {
    return Math.floor((nowMillis - this.#init.startMillis) / this.#init.millisPerRequest) + 1;
  }

  #counted(kind: AnswerKind): void {
    const { startMillis, millisPerRequest, measurement } = this.#init;
    const plannedMillis = startMillis + this.#answered * millisPerRequest;
    this.#answered += 1;
    if (kind !== 'error') measurement.latencies?.record(this.#nowMillis - plannedMillis);
  }

  /** Handles received bytes. Returns whether to go on reading. */
  #read(buffer: Uint8Array, length: number): boolean {
    if (this.#isClosed) return false;
    this.#nowMillis = performance.now();
    try {
      this.counter.feed(buffer, length);
    } catch (error) {
      this.#init.measurement.fail(error as Error);
      return false;
    }
    return true;
  }
}

/**
 * Runs the load.
 *
 * @param measuring called when the load is warm and counting begins
 * @throws if a connection ends, or an answer is not RESP
 */
export async function respOpenLoop(job: RespOpenLoopJob, measuring: () => void): Promise<LoadResult> {
  const { addresses, connections, requestsPerSecond, workload, seed, form, localAddresses = [] } = job;
  const { chooser, requestsDrawn } = workloadOf(workload);
  const requests = encodePipelines(chooser(seed), form, { requests: requestsDrawn, depth: 1 });
  const measurement = new Measurement({ ...job, measuring });
  const open: OpenConnection[] = [];
  const millisPerRequest = (1_000 * connections) / requestsPerSecond;
  const startMillis = performance.now() + 100;
  for (let i = 0; i < connections; i += 1) {
    const address = addresses[i % addresses.length];
    if (address === undefined) throw new RangeError('there is no address to send load to');
    const connection = await OpenConnection.open({
      address,
      localAddress: localAddresses[Math.floor(i / addresses.length) % localAddresses.length],
      meaning: meaningOf(form, 1),
      requests,
      first: Math.floor((requests.pipelines * i) / connections),
      millisPerRequest,
      startMillis: startMillis + (i * millisPerRequest) / connections,
      measurement,
    });
    open.push(connection);
  }
  const timer = setInterval(() => {
    const now = performance.now();
    for (const connection of open) connection.sendDue(now);
  }, STEP_MILLIS);
  try {
    const result = await measurement.run(() => sumOf(open));
    const now = performance.now();
    return { ...result, unsent: open.reduce((sum, connection) => sum + connection.unsentAt(now), 0) };
  } finally {
    clearInterval(timer);
    for (const connection of open) connection.close();
  }
}

function sumOf(open: readonly OpenConnection[]): { grants: number; denials: number; errors: number } {
  const sum = { grants: 0, denials: 0, errors: 0 };
  for (const { counter } of open) {
    sum.grants += counter.grants;
    sum.denials += counter.denials;
    sum.errors += counter.errors;
  }
  return sum;
}
