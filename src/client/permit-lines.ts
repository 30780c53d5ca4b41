/**
 * The lines of `waitForPermit`. A denied request waits in line until there is room again, and is sent again then.
 * Requests for the same limits are sent one after the other, so that room for one does not wake all of them.
 */
import { type AbortSignalLike, Aborts } from './aborts.ts';
import { backoffMillis } from './next-step.ts';
import type { Cancel, Environment } from './environment.ts';
import {
  AbortedError,
  BlockedError,
  UnmatchedError,
  ClosedError,
  IndefiniteError,
  OverloadedError,
  PermitTimeoutError,
  QuorateError,
} from './errors.ts';
import type { Settings } from './options.ts';
import { Ordered } from './ordered.ts';
import type { PermitAnswer } from './permit.ts';

/** The answer of `waitForPermit`: always one that allows the request. */
export type PermitGranted = Extract<PermitAnswer, { readonly allowed: true }> | DegradedGrant;
type DegradedGrant = Extract<PermitAnswer, { readonly kind: 'degraded' }> & { readonly allowed: true };

/** One attempt to get the grant. */
export interface Question {
  /** The last attempt may have been counted, so send the same request under the same id. */
  readonly isRepeat: boolean;
  /** Must be called if this attempt may have been counted but its grant is not returned. */
  readonly doubt: () => void;
}

/** A call of `waitForPermit`. */
export interface WaitInit {
  readonly subject: string;
  readonly cost: number;
  readonly ask: (question: Question) => Promise<PermitAnswer>;
  readonly maxWaitMillis: number;
  readonly signal: AbortSignalLike | undefined;
  /** The request has an id, so it can be repeated after an attempt that may have been counted. */
  readonly isRepeatable: boolean;
}

interface Waiter extends WaitInit {
  /** Position in line; lower ones come first. */
  readonly turn: number;
  readonly untilMillis: number;
  readonly settle: (result: PermitGranted | QuorateError) => void;
  isAsking: boolean;
  isSettled: boolean;
  /** An attempt may have been counted, and its grant was not returned. */
  mayHaveCounted: boolean;
  /** When the first attempt under the current id was sent, if that may have been counted. */
  doubtfulSinceMillis: number | undefined;
  failures: number;
}

interface Line {
  readonly subject: string;
  readonly waiters: Set<Waiter>;
  /** The waiters without a request in flight, in the order in which they came. */
  readonly byTurn: Ordered<Waiter>;
  /** The same waiters, in the order in which they give up. */
  readonly byTime: Ordered<Waiter>;
  /** Waiters with a cost of at least `heldCost` are not asked for before this time. */
  openAtMillis: number;
  heldCost: number;
  /** How many requests may be sent now. */
  places: number;
  /** How many requests are in flight, including those of callers that gave up. */
  asking: number;
  cancelTimer: Cancel | undefined;
}

/** How long to wait after a denial without a retry-after. */
const UNKNOWN_WAIT_MILLIS = 1_000;
const JITTER_MILLIS_MAX = 100;

/** The lines of one client, by subject. */
export class PermitLines {
  readonly #environment: Pick<Environment, 'nowMillis' | 'random' | 'after'>;
  readonly #waitersMax: number;
  /**
   * How long after the first attempt under an id the last one may be sent, so that the cluster still knows the id when
   * it answers.
   */
  readonly #repeatMillisMax: number;
  readonly #lines = new Map<string, Line>();
  readonly #aborts = new Aborts();
  #count = 0;
  #turns = 0;
  #isClosed = false;

  constructor(
    environment: Pick<Environment, 'nowMillis' | 'random' | 'after'>,
    settings: Pick<Settings, 'waitersMax' | 'deadlineMillis' | 'requestIdHorizonMillis'>,
  ) {
    const { waitersMax, deadlineMillis, requestIdHorizonMillis } = settings;
    this.#environment = environment;
    this.#waitersMax = waitersMax;
    this.#repeatMillisMax = requestIdHorizonMillis / 2 - deadlineMillis;
  }

  /**
   * Waits until the request is allowed.
   *
   * @throws OverloadedError, AbortedError, ClosedError, PermitTimeoutError, BlockedError, UnmatchedError, and the
   *   errors of `ask`
   */
  async wait(init: WaitInit): Promise<PermitGranted> {
    if (this.#isClosed) throw new ClosedError(true);
    if (this.#count >= this.#waitersMax) throw new OverloadedError('waitersMax', this.#waitersMax);
    const { signal, subject } = init;
    if (signal?.aborted === true) throw new AbortedError(signal.reason, true);
    const line = this.#lines.get(subject) ?? this.#newLine(subject);
    this.#lines.set(subject, line);
    this.#count += 1;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#settle(line, waiter, new AbortedError(signal?.reason, isDefinite(waiter)));
        this.#advance(line);
      };
      const waiter: Waiter = {
        ...init,
        turn: (this.#turns += 1),
        untilMillis: this.#environment.nowMillis() + init.maxWaitMillis,
        settle: (result) => {
          if (signal !== undefined) this.#aborts.delete(signal, abort);
          if (result instanceof QuorateError) reject(result);
          else resolve(result);
        },
        isAsking: false,
        isSettled: false,
        mayHaveCounted: false,
        doubtfulSinceMillis: undefined,
        failures: 0,
      };
      if (signal !== undefined) this.#aborts.add(signal, abort);
      line.waiters.add(waiter);
      line.byTurn.add(waiter);
      line.byTime.add(waiter);
      this.#advance(line);
    });
  }

  /** Ends all waits with a `ClosedError`. */
  close(): void {
    this.#isClosed = true;
    for (const line of this.#lines.values())
      for (const waiter of line.waiters) this.#settle(line, waiter, new ClosedError(isDefinite(waiter)));
  }

  #newLine(subject: string): Line {
    return {
      subject,
      waiters: new Set(),
      byTurn: new Ordered((a, b) => a.turn < b.turn),
      byTime: new Ordered((a, b) => this.#lastAskMillis(a) < this.#lastAskMillis(b)),
      openAtMillis: 0,
      heldCost: 0,
      // Until the first denial nobody has to wait.
      places: Infinity,
      asking: 0,
      cancelTimer: undefined,
    };
  }

  /** The latest time to send the next attempt. */
  #lastAskMillis({ untilMillis, doubtfulSinceMillis = Infinity }: Waiter): number {
    return Math.min(untilMillis, doubtfulSinceMillis + this.#repeatMillisMax);
  }

  /** Sends the requests whose turn it is. Afterwards a request is in flight, a timer is set, or the line is empty. */
  #advance(line: Line): void {
    const now = this.#environment.nowMillis();
    line.cancelTimer?.();
    line.cancelTimer = undefined;
    for (let next = line.byTurn.first; next !== undefined; next = line.byTurn.first) {
      if (now < line.openAtMillis && next.cost >= line.heldCost) {
        if (this.#lastAskMillis(next) >= line.openAtMillis) return this.#pause(line, now);
        this.#settle(line, next, this.#tooLate(next, line.openAtMillis - now));
      } else if (now - (next.doubtfulSinceMillis ?? now) > this.#repeatMillisMax) {
        this.#settle(line, next, this.#tooLate(next, 0));
      } else {
        if (line.places <= 0 && line.asking > 0) return;
        line.places -= 1;
        void this.#ask(line, next);
      }
    }
  }

  /**
   * Sets the timer for the first waiter. Nobody overtakes it, so waiters that would have to wait too long give up now.
   */
  #pause(line: Line, now: number): void {
    const waitMillis = line.openAtMillis - now;
    for (;;) {
      const first = line.byTime.first;
      if (first === undefined || this.#lastAskMillis(first) >= line.openAtMillis) break;
      this.#settle(line, first, this.#tooLate(first, waitMillis));
    }
    line.cancelTimer = this.#environment.after(Math.ceil(waitMillis), () => {
      handOn(line);
      this.#advance(line);
    });
  }

  #tooLate(waiter: Waiter, waitMillis: number): QuorateError {
    // The request can no longer be repeated under its id, and under another id it might be counted twice.
    if (this.#lastAskMillis(waiter) < waiter.untilMillis) return new IndefiniteError('no_answer');
    return new PermitTimeoutError(waitMillis, isDefinite(waiter));
  }

  async #ask(line: Line, waiter: Waiter): Promise<void> {
    const startedMillis = this.#environment.nowMillis();
    let isDoubtful = false;
    line.byTurn.delete(waiter);
    line.byTime.delete(waiter);
    line.asking += 1;
    waiter.isAsking = true;
    try {
      const isRepeat = waiter.doubtfulSinceMillis !== undefined;
      const answer = await waiter.ask({ isRepeat, doubt: () => (isDoubtful = true) });
      this.#doubt(waiter, isDoubtful, startedMillis);
      this.#answered(line, waiter, answer);
    } catch (error) {
      this.#doubt(waiter, isDoubtful, startedMillis);
      this.#failed(line, waiter, error);
    }
    line.asking -= 1;
    if (!waiter.isSettled) {
      line.byTurn.add(waiter);
      line.byTime.add(waiter);
    }
    this.#advance(line);
  }

  #doubt(waiter: Waiter, isDoubtful: boolean, sinceMillis: number): void {
    waiter.isAsking = false;
    if (!isDoubtful) return;
    waiter.mayHaveCounted = true;
    waiter.doubtfulSinceMillis ??= sinceMillis;
  }

  #answered(line: Line, waiter: Waiter, answer: PermitAnswer): void {
    if (answer.allowed) {
      const { remaining = Infinity } = 'remaining' in answer ? answer : {};
      line.places = Math.max(line.places, remaining);
      // Even if nothing remains, let one more waiter ask: its denial says how long to wait.
      handOn(line);
      return this.#settle(line, waiter, answer as PermitGranted);
    }
    if (answer.kind === 'blocked' || answer.kind === 'unmatched') {
      handOn(line);
      const isSure = isDefinite(waiter);
      const heldBack =
        answer.kind === 'blocked'
          ? new BlockedError(answer.retryAfterMillis, isSure)
          : new UnmatchedError(isSure);
      return this.#settle(line, waiter, heldBack);
    }
    // An id ends with a decision, and only then.
    if (answer.kind === 'denied') waiter.doubtfulSinceMillis = undefined;
    else if (waiter.mayHaveCounted && !waiter.isRepeatable)
      return this.#failed(line, waiter, new IndefiniteError('no_answer'));
    waiter.failures = 0;
    const { retryAfterMillis = UNKNOWN_WAIT_MILLIS } = answer;
    // Jitter, because other processes got the same retry-after.
    const jitterMillis = this.#environment.random() * Math.min(JITTER_MILLIS_MAX, retryAfterMillis / 10);
    this.#holdBack(line, Math.max(1, retryAfterMillis) + jitterMillis, waiter.cost);
  }

  #failed(line: Line, waiter: Waiter, error: unknown): void {
    const wrong = error instanceof QuorateError ? error : internal(error);
    const mayRepeat =
      wrong.code === 'UNAVAILABLE' ||
      wrong.code === 'OVERLOADED' ||
      (wrong.code === 'INDEFINITE' && waiter.isRepeatable);
    waiter.failures += 1;
    const waitMillis = 10 + backoffMillis(waiter.failures + 2, this.#environment.random());
    const isLate = this.#environment.nowMillis() + waitMillis > this.#lastAskMillis(waiter);
    if (mayRepeat && !isLate) return this.#holdBack(line, waitMillis, 0);
    handOn(line);
    const isLie = wrong.isDefinite && waiter.mayHaveCounted;
    this.#settle(line, waiter, isLie ? new IndefiniteError(wrong.message, wrong) : wrong);
  }

  /** @param cost waiters with a lower cost are not held back */
  #holdBack(line: Line, millis: number, cost: number): void {
    const openAtMillis = this.#environment.nowMillis() + millis;
    line.places = 0;
    if (line.openAtMillis >= openAtMillis && line.heldCost <= cost) return;
    line.openAtMillis = openAtMillis;
    line.heldCost = cost;
  }

  #settle(line: Line, waiter: Waiter, result: PermitGranted | QuorateError): void {
    if (waiter.isSettled) return;
    waiter.isSettled = true;
    line.waiters.delete(waiter);
    line.byTurn.delete(waiter);
    line.byTime.delete(waiter);
    this.#count -= 1;
    if (line.waiters.size === 0) {
      line.cancelTimer?.();
      this.#lines.delete(line.subject);
    }
    waiter.settle(result);
  }
}

/** Gives the place in line to the next waiter. */
function handOn(line: Line): void {
  line.places = Math.max(line.places, 1);
}

function internal(cause: unknown): QuorateError {
  return new QuorateError('INTERNAL', String(cause), { isDefinite: false, cause });
}

function isDefinite({ isAsking, mayHaveCounted }: Waiter): boolean {
  return !isAsking && !mayHaveCounted;
}
