/**
 * Who is refused while a node has more to do than it can: so many requests may be open as its `DelayLimit` lets in, and each
 * client may have a multiple of the room that is left (a dynamic threshold: Choudhury and Hahne, 1998). So who has most is
 * refused first, some room is always left for those who have few, and nothing is looked up but the client's own count. It
 * reads no clock and asks nobody.
 */
import type { ClientShare, SheddingBehindDoor, SheddingOfForwarded } from '../api/shedding.ts';
import { ClientShares } from './client-shares.ts';
import { DelayLimit } from './delay-limit.ts';
import { LateLimit } from './late-limit.ts';

/** A client alone may have four fifths of all; beside n others that want as much, 4 of 4 n + 5 parts. */
const ROOM_FACTOR = 4;
/** Requests that a node may always have open. */
const LEAST = 64;
/**
 * A round of the event loop that has so much to do, of processor time, has a queue before it. An answer takes some four rounds of
 * nodes that are equally busy: with this, what is let in is answered well within 100 ms. Time in which others have the processor
 * does not count: letting in fewer would not make them go away, and long rounds with little to do in each do not lack room.
 */
export const ROUND_MILLIS_MAX = 12;

export interface LoadShedderInit {
  readonly monotonicMillis: () => number;
  /** What may be open while nothing waits. */
  readonly openMax: number;
  /** Default: 64. */
  readonly least?: number;
  /** Default: 12. */
  readonly targetMillis?: number;
  /** Told when requests begin to be refused, and a second after the last one was. */
  readonly changed?: (isShedding: boolean, report: SheddingReport) => void;
}

export interface SheddingReport {
  /** Requests that may be open now. */
  readonly limit: number;
  readonly open: number;
  /** What the shortest round of the last interval took, in milliseconds of processor time. */
  readonly roundMillis: number;
  /** Since the node started. */
  readonly refused: number;
}

/**
 * What other nodes forward was let in there, and work has been done for it: it is refused only if it is so many times what this
 * node itself would let in.
 */
const FORWARDED_FACTOR = 4;
/** Without a refusal for this long, it is over. */
const CALM_MILLIS = 1_000;

export class LoadShedder implements SheddingBehindDoor, SheddingOfForwarded {
  readonly #init: LoadShedderInit;
  readonly #limit: DelayLimit;
  readonly #late: LateLimit;
  readonly #clients = new ClientShares();
  #open = 0;
  /** Open requests of other nodes; not among those. */
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

  /** How many may be open now. */
  get #openMax(): number {
    return Math.min(this.#late.limit, this.#limit.limit);
  }

  get isBusy(): boolean {
    return this.#late.isBusy;
  }

  entered(client: string, requests: number): ClientShare {
    const share = this.#clients.of(client);
    share.open += requests;
    this.#open += requests;
    return share;
  }

  left(share: ClientShare, requests: number): void {
    share.open -= requests;
    this.#open -= requests;
    this.#late.answered(requests);
  }

  /** One more that another node forwarded. Returns whether it is refused; if not, it is open until `leftForwarded`. */
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

  /** Rounds of the event loop are over. @param busyMillis processor time of one of them @param idleMillis in which they had nothing to do */
  rounds(busyMillis: number, idleMillis: number): void {
    const now = this.#init.monotonicMillis();
    this.#limit.observe(busyMillis, now);
    this.#late.look(idleMillis, now);
  }

  /** To be called every tick: tells that refusing began, or ended. */
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
