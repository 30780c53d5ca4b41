/**
 * Decides which requests an overloaded node refuses. Its `DelayLimit` says how many may be open. Each client may have
 * a multiple of the room that is left (dynamic threshold: Choudhury and Hahne, "Dynamic queue length thresholds for
 * shared-memory packet switches", 1998). So the clients with the most open requests are refused first, and some room
 * is always left for clients with few. The check only needs the client's own count. It reads no clock and asks
 * nobody.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { ClientLoad, SheddingApi, SheddingOfForwarded } from '../api/api-listener.ts';
import { ClientLoads } from './client-loads.ts';
import { DelayLimit } from './delay-limit.ts';
import { LateLimit } from './late-limit.ts';

/** A client alone may use four fifths of all places; beside n others that want as much, 4 of 4n + 5 parts. */
const ROOM_FACTOR = 4;
/** The number of requests that a node may always have open. */
const LEAST = 64;
/**
 * If a round of the event loop takes this much CPU time, in milliseconds, there is a queue before it. An answer takes
 * about four rounds of equally busy nodes, so admitted requests are answered well within 100 ms. Time in which other
 * processes have the CPU does not count: fewer requests would not change it.
 */
export const ROUND_MILLIS_MAX = 12;

/** The arguments of a load shedder. */
export interface LoadShedderInit extends MonotonicClock {
  /** The most open requests while nothing waits. */
  readonly openMax: number;
  /** The fewest; default 64. */
  readonly least?: number;
  /** The target CPU time of a round in milliseconds; default 12. */
  readonly targetMillis?: number;
  /** Called when the node begins to refuse requests, and a second after the last refusal. */
  readonly changed?: (isShedding: boolean, report: SheddingReport) => void;
}

/** The figures of the load shedder. */
export interface SheddingReport {
  /** The most requests that may be open now. */
  readonly limit: number;
  readonly open: number;
  /** The CPU time of the shortest round in the last interval, in milliseconds. */
  readonly roundMillis: number;
  /** Since the node started. */
  readonly refused: number;
}

/**
 * Forwarded requests were already admitted by another node, and work was done for them. So they are refused only
 * above this multiple of the node's own limit.
 */
const FORWARDED_FACTOR = 4;
/** Shedding is over after this many milliseconds without a refusal. */
const CALM_MILLIS = 1_000;

/** The load shedder of a node. */
export class LoadShedder implements SheddingApi, SheddingOfForwarded {
  readonly #init: LoadShedderInit;
  readonly #limit: DelayLimit;
  readonly #late: LateLimit;
  readonly #clients = new ClientLoads();
  #open = 0;
  /** Open requests from other nodes; not included in `#open`. */
  #forwarded = 0;
  #refused = 0;
  #refusedBefore = 0;
  #refusedAtMillis = -Infinity;
  #isShedding = false;

  constructor(init: LoadShedderInit) {
    this.#init = init;
    this.#limit = new DelayLimit({
      least: Math.min(init.openMax, init.least ?? LEAST),
      most: init.openMax,
      targetMillis: init.targetMillis ?? ROUND_MILLIS_MAX,
    });
    this.#late = new LateLimit(init.openMax, init.monotonicMillis());
  }

  /** The current figures. */
  get report(): SheddingReport {
    const { smallestDelayMillis: roundMillis } = this.#limit;
    return { limit: this.#openMax, open: this.#open, roundMillis, refused: this.#refused };
  }

  refuses(client: string, isLate = false): boolean {
    if (isLate) this.#late.waited();
    const room = Math.min(this.#limit.roomBeside(this.#open), this.#late.limit - this.#open);
    if (room > 0 && this.#clients.openOf(client) < ROOM_FACTOR * room) return false;
    this.#limit.refused();
    this.#refused += 1;
    return true;
  }

  /** The most requests that may be open now. */
  get #openMax(): number {
    return Math.min(this.#late.limit, this.#limit.limit);
  }

  get isBusy(): boolean {
    return this.#late.isBusy;
  }

  entered(client: string, requests: number): ClientLoad {
    const load = this.#clients.of(client);
    load.open += requests;
    this.#open += requests;
    return load;
  }

  left(load: ClientLoad, requests: number): void {
    load.open -= requests;
    this.#open -= requests;
    this.#late.answered(requests);
  }

  /** Counts one more forwarded request until `leftForwarded`. Returns true if it is refused instead. */
  maybeRefuseForwarded(): boolean {
    if (this.#forwarded >= FORWARDED_FACTOR * this.#limit.limit) {
      this.#refused += 1;
      return true;
    }
    this.#forwarded += 1;
    return false;
  }

  leftForwarded(): void {
    this.#forwarded -= 1;
  }

  /**
   * Rounds of the event loop are over.
   *
   * @param busyMillis the CPU time of one of them
   * @param idleMillis how long they were idle
   */
  rounds(busyMillis: number, idleMillis: number): void {
    const now = this.#init.monotonicMillis();
    this.#limit.observe(busyMillis, now);
    this.#late.check(idleMillis, now);
  }

  /** Called every tick: reports when refusing begins or ends. */
  tick(): void {
    const now = this.#init.monotonicMillis();
    if (this.#refused > this.#refusedBefore) this.#refusedAtMillis = now;
    this.#refusedBefore = this.#refused;
    const isShedding = now - this.#refusedAtMillis < CALM_MILLIS;
    if (isShedding === this.#isShedding) return;
    this.#isShedding = isShedding;
    this.#init.changed?.(isShedding, this.report);
  }
}
