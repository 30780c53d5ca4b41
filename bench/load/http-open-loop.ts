/**
 * Load over HTTP at a fixed rate, through a pool of connections with one request at a time on each. The latency of a
 * request counts from the time it was due. A request that is due while all connections are busy is not sent: a service
 * with an exhausted pool knows that at once. Only decisions count for latency.
 */
import { connect, type Socket } from 'node:net';
import { workloadOf } from '../workloads.ts';
import { ALLOW_PATH, allowBody } from './http-load.ts';
import type { Address, HttpOpenLoopJob, LoadResult } from './load-job.ts';
import { Measurement } from './measurement.ts';

/** Interval at which due requests are sent. */
const STEP_MILLIS = 2;
const BODIES = 65_536;
/** Position of the status in `HTTP/1.1 200`. */
const STATUS_AT = 9;
const STATUS_END = 12;
const HEADERS_END = '\r\n\r\n';

interface PoolInit {
  readonly address: Address;
  readonly size: number;
  readonly answered: (status: number, intendedMillis: number) => void;
  readonly failed: (error: Error) => void;
}

/** The connections to one address. */
class Pool {
  readonly #init: PoolInit;
  readonly #free: Connection[] = [];
  readonly #all: Connection[] = [];

  constructor(init: PoolInit) {
    this.#init = init;
  }

  async open(): Promise<void> {
    const { address, size, failed } = this.#init;
    while (this.#all.length < size) {
      const connection = new Connection(address, failed, (status, intendedMillis) => {
        this.#free.push(connection);
        this.#init.answered(status, intendedMillis);
      });
      await connection.opened();
      this.#all.push(connection);
      this.#free.push(connection);
    }
  }

  /** Sends the request if a connection is free. Returns whether one was. */
  send(request: string, intendedMillis: number): boolean {
    const connection = this.#free.pop();
    connection?.send(request, intendedMillis);
    return connection !== undefined;
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }
}

class Connection {
  readonly #socket: Socket;
  readonly #answered: PoolInit['answered'];
  #heard = '';
  #intendedMillis = 0;
  #isClosed = false;

  constructor({ host, port }: Address, failed: (error: Error) => void, answered: PoolInit['answered']) {
    this.#answered = answered;
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (text) => this.#hear(String(text)));
    const ended = (error?: Error): void => {
      if (!this.#isClosed) failed(error ?? new Error(`port ${port} ended a connection`));
    };
    this.#socket.on('error', ended);
    this.#socket.on('close', () => ended());
  }

  async opened(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#socket.once('connect', resolve);
      this.#socket.once('error', reject);
    });
  }

  send(request: string, intendedMillis: number): void {
    this.#intendedMillis = intendedMillis;
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #hear(text: string): void {
    this.#heard += text;
    const headersEnd = this.#heard.indexOf(HEADERS_END);
    if (headersEnd < 0) return;
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(this.#heard)?.[1] ?? '0';
    if (this.#heard.length < headersEnd + HEADERS_END.length + Number(length)) return;
    const status = Number(this.#heard.slice(STATUS_AT, STATUS_END));
    this.#heard = '';
    this.#answered(status, this.#intendedMillis);
  }
}

/** Runs the load. @param measuring called when the load is warm and counting begins @throws if a connection ends */
export async function httpOpenLoop(job: HttpOpenLoopJob, measuring: () => void): Promise<LoadResult> {
  const { addresses, connections, requestsPerSecond, workload, seed } = job;
  const next = workloadOf(workload).chooser(seed);
  const requests = Array.from({ length: BODIES }, () => encode(allowBody(next())));
  const measurement = new Measurement({ ...job, measuring });
  const counts = { grants: 0, denials: 0, errors: 0 };
  let unsent = 0;
  const answered = (status: number, intendedMillis: number): void => {
    if (status === 200) counts.grants += 1;
    else if (status === 429) counts.denials += 1;
    else counts.errors += 1;
    if (status === 200 || status === 429) measurement.latencies?.record(performance.now() - intendedMillis);
  };
  const failed = (error: Error): void => measurement.fail(error);
  const size = Math.ceil(connections / addresses.length);
  const pools = addresses.map((address) => new Pool({ address, size, answered, failed }));
  await Promise.all(pools.map(async (pool) => pool.open()));
  const startMillis = performance.now();
  let due = 0;
  const timer = setInterval(() => {
    // The first one is due at the start.
    const until = 1 + Math.floor(((performance.now() - startMillis) * requestsPerSecond) / 1_000);
    for (; due < until; due += 1) {
      const request = requests[due % requests.length] ?? '';
      const wasSent = pools[due % pools.length]?.send(
        request,
        startMillis + (due * 1_000) / requestsPerSecond,
      );
      if (wasSent !== true && measurement.latencies !== undefined) unsent += 1;
    }
  }, STEP_MILLIS);
  try {
    return { ...(await measurement.run(() => ({ ...counts }))), unsent };
  } finally {
    clearInterval(timer);
    for (const pool of pools) pool.close();
  }
}

function encode(body: string): string {
  return (
    `POST ${ALLOW_PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}
