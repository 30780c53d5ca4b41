/**
 * Fetches the leaders of the partitions: at first, when a request shows that the known leaders are wrong, and when the
 * list is old. It only does so while there are requests, so an idle client sends nothing.
 */
import { isLeadersReport } from '../api/leaders.ts';
import type { Environment } from './environment.ts';
import type { ClientEvent } from './events.ts';
import type { LeaderTable } from './leader-table.ts';

const LEADERS = '/v1/leaders';
const AGE_MILLIS_MAX = 10_000;
/**
 * Pause between two fetches, in milliseconds. It doubles after each fetch that brought nothing new, up to the maximum.
 */
const PAUSE_MILLIS = 100;
const PAUSE_MILLIS_MAX = 5_000;
/** Pause after a node refused: it is older than this request, or the token has another role. */
const REFUSED_MILLIS = 60_000;
const ANSWER_MILLIS_MAX = 1_000;

/** Keeps a `LeaderTable` up to date. */
export class LeaderWatch {
  readonly #environment: Environment;
  readonly #table: LeaderTable;
  readonly #announce: (event: ClientEvent) => void;
  #isAsking = false;
  #isWanted = true;
  #failures = 0;
  #notBeforeMillis = 0;
  #oldAtMillis = 0;

  constructor(environment: Environment, table: LeaderTable, announce: (event: ClientEvent) => void) {
    this.#environment = environment;
    this.#table = table;
    this.#announce = announce;
  }

  /** Fetches the leaders as soon as allowed, because the table is wrong. */
  want(): void {
    this.#isWanted = true;
    this.maybeAsk();
  }

  /** Fetches the leaders if it is time to. Call it whenever something is sent. */
  maybeAsk(): void {
    const { transport, nowMillis } = this.#environment;
    const now = nowMillis();
    if (this.#isAsking || now < this.#notBeforeMillis || (!this.#isWanted && now < this.#oldAtMillis)) return;
    this.#isAsking = true;
    const origin = this.#table.choose(undefined, now);
    transport.send({ origin, method: 'GET', path: LEADERS, timeoutMillis: ANSWER_MILLIS_MAX }, (result) => {
      this.#isAsking = false;
      if (result.kind === 'failed') this.#table.failed(origin, nowMillis());
      const status = result.kind === 'failed' ? 0 : result.status;
      const report = result.kind === 'response' && status === 200 ? parsed(result.body) : undefined;
      if (isLeadersReport(report)) {
        this.#table.learn(report);
        this.#learned();
      } else this.#failed(status);
    });
  }

  #learned(): void {
    const { partitions, led } = this.#table.counts;
    const now = this.#environment.nowMillis();
    this.#failures = led < partitions ? this.#failures + 1 : 0;
    this.#isWanted = led < partitions;
    this.#notBeforeMillis = now + this.#pauseMillis();
    this.#oldAtMillis = now + AGE_MILLIS_MAX * (0.5 + this.#environment.random() / 2);
    this.#announce({ type: 'leaders', partitions, led });
  }

  #failed(status: number): void {
    this.#failures += 1;
    const isRefused = status >= 400 && status < 500;
    this.#notBeforeMillis =
      this.#environment.nowMillis() + (isRefused ? REFUSED_MILLIS : this.#pauseMillis());
  }

  #pauseMillis(): number {
    const longest = Math.min(PAUSE_MILLIS_MAX, PAUSE_MILLIS * 2 ** this.#failures);
    return longest * (0.5 + this.#environment.random() / 2);
  }
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
