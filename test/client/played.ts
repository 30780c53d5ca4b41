/**
 * A fake environment for a client: a clock that only the test advances, and nodes that answer when the test says so.
 */
import { QuorateClient } from '../../src/client/client.ts';
import type { Cancel, Environment, Exchange, ExchangeResult } from '../../src/client/environment.ts';
import type { ClientEvent } from '../../src/client/events.ts';
import type { ClientOptions } from '../../src/client/options.ts';
import type { LeadersReport } from '../../src/api/leaders.ts';

export const A = 'http://a:1';
export const B = 'http://b:1';
export const C = 'http://c:1';

export interface SentRequest {
  readonly userId?: string;
  readonly requestId?: string;
  readonly cost?: number;
  readonly descriptors?: Readonly<Record<string, string>>;
}

/** A batch that was sent and not answered yet. */
export class Sent {
  readonly origin: string;
  readonly requests: readonly SentRequest[];
  readonly atMillis: number;
  readonly #done: (result: ExchangeResult) => void;
  isOpen = true;

  constructor({ origin, body = '{}' }: Exchange, atMillis: number, done: (result: ExchangeResult) => void) {
    this.origin = origin;
    this.requests = (JSON.parse(body) as { requests: SentRequest[] }).requests;
    this.atMillis = atMillis;
    this.#done = done;
  }

  report(result: ExchangeResult): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#done(result);
  }

  respond(status: number, body: unknown): void {
    this.report({ kind: 'response', status, body: typeof body === 'string' ? body : JSON.stringify(body) });
  }

  /** Gives the same answer to all its requests. */
  answer(answer: unknown): void {
    this.respond(200, { answers: this.requests.map(() => answer) });
  }

  fail(isSent: boolean): void {
    this.report({ kind: 'failed', isSent, error: new Error(isSent ? 'ECONNRESET' : 'ECONNREFUSED') });
  }
}

export function grantOf(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const decided = { partition: 0, term: 1, index: 1, position: 0, timeMillis: 1 };
  const limitStatus = {
    rule: 'default',
    limit: 100,
    windowMillis: 60_000,
    remaining: 42,
    resetMillis: 60_000,
  };
  return { status: 200, allowed: true, ...limitStatus, rulesVersion: 1, decided, ...changes };
}

export function denialOf(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return grantOf({ status: 429, allowed: false, remaining: 0, retryAfterMillis: 5_000, ...changes });
}

export function unavailableOf(reason: string, proposed: boolean): Record<string, unknown> {
  return { status: 503, allowed: false, reason, proposed };
}

interface Timer {
  readonly atMillis: number;
  readonly run: () => void;
}

export class Played {
  nowMillis = 1_000;
  readonly sent: Sent[] = [];
  readonly events: ClientEvent[] = [];
  leadersAsked = 0;
  /** Undefined if nodes do not know this route. */
  leaders: LeadersReport | undefined;
  random = 0.5;
  readonly client: QuorateClient;
  readonly #timers = new Set<Timer>();
  readonly #soon: (() => void)[] = [];
  #ids = 0;

  constructor(options: Partial<ClientOptions> = {}, leaders?: LeadersReport) {
    this.leaders = leaders;
    const onEvent = (event: ClientEvent): void => void this.events.push(event);
    this.client = new QuorateClient({ nodes: [A, B, C], onEvent, ...options }, this.#environment());
  }

  #environment(): Environment {
    return {
      transport: {
        send: (exchange, done) => this.#send(exchange, done),
        close: () => {},
      },
      nowMillis: () => this.nowMillis,
      random: () => this.random,
      drawRequestId: () => `id-${(this.#ids += 1)}`,
      soon: (run) => void this.#soon.push(run),
      after: (millis, run) => this.#after(millis, run),
    };
  }

  #send(exchange: Exchange, done: (result: ExchangeResult) => void): void {
    if (exchange.method === 'GET') {
      this.leadersAsked += 1;
      const body = JSON.stringify(this.leaders ?? {});
      this.#soon.push(() => done({ kind: 'response', status: this.leaders === undefined ? 404 : 200, body }));
      return;
    }
    const sent = new Sent(exchange, this.nowMillis, done);
    this.sent.push(sent);
    this.#after(exchange.timeoutMillis, () => sent.fail(true));
  }

  #after(millis: number, run: () => void): Cancel {
    const timer = { atMillis: this.nowMillis + millis, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Runs everything that needs no time. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < 3;) {
      // Each promise of the client needs a turn or two of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const soon = this.#soon.splice(0);
      idle = soon.length === 0 ? idle + 1 : 0;
      for (const run of soon) run();
    }
  }

  /** Advances time and runs each timer at its time. */
  async pass(millis: number): Promise<void> {
    const endMillis = this.nowMillis + millis;
    await this.settle();
    for (;;) {
      const due = [...this.#timers].sort((a, b) => a.atMillis - b.atMillis)[0];
      if (due === undefined || due.atMillis > endMillis) break;
      this.#timers.delete(due);
      this.nowMillis = Math.max(this.nowMillis, due.atMillis);
      due.run();
      await this.settle();
    }
    this.nowMillis = endMillis;
  }

  /** The last batch. @throws if it was answered already */
  get last(): Sent {
    const last = this.sent.at(-1);
    if (last === undefined || !last.isOpen) throw new Error('there is no open batch');
    return last;
  }
}

/** The state of a promise after everything that needs no time has run. */
export function watched<T>(promise: Promise<T>): {
  value?: T;
  error?: Error & { code?: string; isDefinite?: boolean };
} {
  const seen: { value?: T; error?: Error & { code?: string; isDefinite?: boolean } } = {};
  promise.then(
    (value) => (seen.value = value),
    (error: Error) => (seen.error = error),
  );
  return seen;
}
