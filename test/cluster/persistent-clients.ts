/**
 * Well-behaved clients. Each keeps its connection, uses the next node if its own one stops, and repeats a request
 * only if the connection broke before an answer. They record everything.
 */
import { Agent, type ClientRequest, request as httpRequest } from 'node:http';
import { setImmediate as afterReading, setTimeout as delay } from 'node:timers/promises';

export interface Seen {
  /** HTTP status; 0: the connection broke. */
  readonly status: number;
  readonly reason: string;
  readonly atMillis: number;
  readonly tookMillis: number;
}

/** Pause between requests, so that 16 clients leave the nodes enough of two cores. */
const PAUSE_MILLIS = 20;
const USERS_PER_CLIENT = 5;
/** A refused connection loses nothing: the client asks the next node. */
const REFUSED_PAUSE_MILLIS = 20;
/**
 * Well below the time for which a stopping node waits for one more request of each client. A client that was paused for
 * longer may be too late.
 */
const IDLE_MILLIS_MAX = 80;

export class PersistentClients {
  readonly answers: Seen[] = [];
  /** Grants of each user. */
  readonly grants = new Map<string, number>();
  /** Users whose requests may have counted without a grant. */
  readonly doubtful = new Set<string>();
  /** Connections that broke under a request, and how. */
  readonly broken = new Map<string, number>();
  readonly #ports: () => readonly number[];
  #isActive = true;
  readonly #clients: Promise<void>[];

  constructor(count: number, ports: () => readonly number[]) {
    this.#ports = ports;
    this.#clients = Array.from({ length: count }, async (_, client) => this.#run(client));
  }

  async #run(client: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let turn = client;
    let idleSince = performance.now();
    for (let i = 0; this.#isActive; i += 1) {
      const userId = `user-${client}-${i % USERS_PER_CLIENT}`;
      for (;;) {
        const ports = this.#ports();
        const isLate = performance.now() - idleSince > IDLE_MILLIS_MAX;
        const seen = await this.#ask(agent, ports[turn % ports.length] ?? 0, userId, isLate);
        idleSince = performance.now();
        if (seen.status !== 0) {
          this.answers.push(seen);
          if (seen.status === 200) this.grants.set(userId, (this.grants.get(userId) ?? 0) + 1);
          else this.doubtful.add(userId);
          break;
        }
        this.broken.set(seen.reason, (this.broken.get(seen.reason) ?? 0) + 1);
        turn += 1;
        if (!this.#isActive) break;
        await delay(REFUSED_PAUSE_MILLIS);
      }
      await delay(PAUSE_MILLIS);
      // Do not use a connection that was closed meanwhile: timers run before the event that reports the close.
      await afterReading();
    }
    agent.destroy();
  }

  async #ask(agent: Agent, port: number, userId: string, isLate: boolean): Promise<Seen> {
    const payload = JSON.stringify({ userId });
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) };
    const startedAt = performance.now();
    return new Promise((resolve) => {
      const settle = (status: number, reason: string): void => {
        const atMillis = performance.now();
        resolve({ status, reason, atMillis, tookMillis: atMillis - startedAt });
      };
      const request: ClientRequest = httpRequest({
        agent,
        port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/v1/allow',
        headers,
      });
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', () => settle(0, 'in the middle of an answer'));
        response.on('end', () => {
          const { reason } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { reason?: string };
          settle(response.statusCode ?? 0, reason ?? '');
        });
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        const kept = isLate ? 'a connection that was idle for long' : 'a kept connection';
        const where = request.reusedSocket ? kept : 'a new connection';
        settle(0, `${error.code ?? error.message} on ${where}`);
      });
      request.end(payload);
    });
  }

  async stop(): Promise<void> {
    this.#isActive = false;
    await Promise.all(this.#clients);
  }

  /** How often each answer was seen. */
  get counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { status, reason } of this.answers) {
      const name = `${status}${reason === '' ? '' : ` ${reason}`}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }

  /** The longest time in which nothing but 503 was answered, to all clients together. */
  get longestOutageMillis(): number {
    let longest = 0;
    let since: number | undefined;
    for (const { status, atMillis, tookMillis } of this.answers) {
      if (status !== 503) since = undefined;
      else {
        since ??= atMillis - tookMillis;
        longest = Math.max(longest, atMillis - since);
      }
    }
    return longest;
  }

  /** Percentile of the latencies between two moments. */
  percentileMillis(fraction: number, fromMillis: number, toMillis: number): number {
    const times = this.answers
      .filter(({ atMillis }) => atMillis >= fromMillis && atMillis <= toMillis)
      .map(({ tookMillis }) => tookMillis)
      .sort((a, b) => a - b);
    return times[Math.min(times.length - 1, Math.floor(fraction * times.length))] ?? 0;
  }
}
