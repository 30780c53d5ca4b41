/**
 * `waitForPermit`: who was denied waits in line until there is room again, and is asked for anew. Those who wait for the same come one
 * after the other, in order, so that a denial wakes one of them and not all.
 */
import { backoffMillis } from './next-step.ts';
import type { Cancel, Environment } from './environment.ts';
import { AbortedError, BlockedError, OverloadedError, PermitTimeoutError, QuorateError } from './errors.ts';
import type { PermitAnswer } from './permit.ts';

export type PermitGranted = Extract<PermitAnswer, { readonly allowed: true }> | DegradedGrant;
type DegradedGrant = Extract<PermitAnswer, { readonly kind: 'degraded' }> & { readonly allowed: true };

/** An `AbortSignal`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface WaitInit {
  readonly subject: string;
  /** Asks once. @param isRepeat the last one may have been counted: the same is asked again */
  readonly ask: (isRepeat: boolean) => Promise<PermitAnswer>;
  readonly maxWaitMillis: number;
  readonly signal: AbortSignalLike | undefined;
  /** What was asked has an id, so that it can be asked again where it may have been counted. */
  readonly isRepeatable: boolean;
}

interface Waiter extends WaitInit {
  readonly untilMillis: number;
  readonly settle: (result: PermitGranted | QuorateError) => void;
  isAsking: boolean;
  isSettled: boolean;
  /** Since the first question that may have been counted and was not answered. */
  doubtfulSinceMillis: number | undefined;
  failures: number;
}

interface Line {
  readonly subject: string;
  readonly waiters: Set<Waiter>;
  /** Nobody is asked for before. */
  openAtMillis: number;
  /** So many may be asked for now. */
  places: number;
  cancelTimer: Cancel | undefined;
}

/** What may have been counted is not repeated after this: its id might be forgotten, and it would count twice. */
const REPEAT_MILLIS_MAX = 60_000;
/** After a denial that does not say how long to wait. */
const UNTOLD_MILLIS = 1_000;
const JITTER_MILLIS_MAX = 100;

export class PermitLines {
  readonly #environment: Pick<Environment, 'nowMillis' | 'random' | 'after'>;
  readonly #waitersMax: number;
  readonly #lines = new Map<string, Line>();
  #count = 0;

  constructor(environment: Pick<Environment, 'nowMillis' | 'random' | 'after'>, waitersMax: number) {
    this.#environment = environment;
    this.#waitersMax = waitersMax;
  }

  /** @throws OverloadedError, AbortedError, PermitTimeoutError, BlockedError, and what asking throws */
  async wait(init: WaitInit): Promise<PermitGranted> {
    if (this.#count >= this.#waitersMax) throw new OverloadedError('waitersMax', this.#waitersMax);
    const { signal, subject } = init;
    if (signal?.aborted === true) throw new AbortedError(signal.reason, true);
    const line = this.#lines.get(subject) ?? newLine(subject);
    this.#lines.set(subject, line);
    this.#count += 1;
    return new Promise((resolve, reject) => {
      const abort = (): void =>
        this.#settle(line, waiter, new AbortedError(signal?.reason, !isDoubtful(waiter)));
      const waiter: Waiter = {
        ...init,
        untilMillis: this.#environment.nowMillis() + init.maxWaitMillis,
        settle: (result) => {
          signal?.removeEventListener('abort', abort);
          if (result instanceof QuorateError) reject(result);
          else resolve(result);
        },
        isAsking: false,
        isSettled: false,
        doubtfulSinceMillis: undefined,
        failures: 0,
      };
      signal?.addEventListener('abort', abort);
      line.waiters.add(waiter);
      this.#advance(line);
    });
  }

  /** Everybody who waits is told so. */
  close(errorOf: (isDefinite: boolean) => QuorateError): void {
    for (const line of this.#lines.values())
      for (const waiter of line.waiters) this.#settle(line, waiter, errorOf(!isDoubtful(waiter)));
  }

  #advance(line: Line): void {
    const waitMillis = line.openAtMillis - this.#environment.nowMillis();
    if (waitMillis > 0) return this.#pause(line, waitMillis);
    for (const waiter of line.waiters) {
      if (line.places <= 0) return;
      if (waiter.isAsking) continue;
      line.places -= 1;
      waiter.isAsking = true;
      void this.#ask(line, waiter);
    }
  }

  #pause(line: Line, waitMillis: number): void {
    for (const waiter of line.waiters) {
      const isHopeless = !waiter.isAsking && line.openAtMillis > waiter.untilMillis;
      if (isHopeless) this.#settle(line, waiter, new PermitTimeoutError(waitMillis, !isDoubtful(waiter)));
    }
    line.cancelTimer?.();
    line.cancelTimer = undefined;
    if (line.waiters.size === 0) return;
    line.cancelTimer = this.#environment.after(Math.ceil(waitMillis), () => {
      line.cancelTimer = undefined;
      line.places = Math.max(line.places, 1);
      this.#advance(line);
    });
  }

  async #ask(line: Line, waiter: Waiter): Promise<void> {
    const startedMillis = this.#environment.nowMillis();
    try {
      const answer = await waiter.ask(waiter.doubtfulSinceMillis !== undefined);
      this.#answered(line, waiter, answer);
    } catch (error) {
      this.#failed(line, waiter, { error, startedMillis });
    }
    this.#advance(line);
  }

  #answered(line: Line, waiter: Waiter, answer: PermitAnswer): void {
    waiter.isAsking = false;
    if (answer.allowed) {
      const { remaining = Infinity } = 'remaining' in answer ? answer : {};
      // One more finds out how long to wait, where nothing remains.
      line.places = Math.max(line.places, 1, remaining);
      return this.#settle(line, waiter, answer as PermitGranted);
    }
    if (answer.kind === 'blocked') {
      line.places = Math.max(line.places, 1);
      return this.#settle(line, waiter, new BlockedError());
    }
    waiter.doubtfulSinceMillis = undefined;
    waiter.failures = 0;
    const { retryAfterMillis = UNTOLD_MILLIS } = answer;
    // Other processes were told the same time.
    const jitterMillis = this.#environment.random() * Math.min(JITTER_MILLIS_MAX, retryAfterMillis / 10);
    this.#holdBack(line, retryAfterMillis + jitterMillis);
  }

  #failed(
    line: Line,
    waiter: Waiter,
    asked: { readonly error: unknown; readonly startedMillis: number },
  ): void {
    const { error, startedMillis } = asked;
    waiter.isAsking = false;
    const wrong = error instanceof QuorateError ? error : internal(error);
    const now = this.#environment.nowMillis();
    if (wrong.code === 'INDEFINITE') waiter.doubtfulSinceMillis ??= startedMillis;
    const { doubtfulSinceMillis } = waiter;
    const isTooLate = doubtfulSinceMillis !== undefined && now - doubtfulSinceMillis > REPEAT_MILLIS_MAX;
    const mayRepeat =
      wrong.code === 'UNAVAILABLE' ||
      wrong.code === 'OVERLOADED' ||
      (wrong.code === 'INDEFINITE' && waiter.isRepeatable);
    waiter.failures += 1;
    const waitMillis = 10 + backoffMillis(waiter.failures + 2, this.#environment.random());
    if (!mayRepeat || isTooLate || now + waitMillis > waiter.untilMillis) {
      line.places = Math.max(line.places, 1);
      return this.#settle(line, waiter, wrong);
    }
    this.#holdBack(line, waitMillis);
  }

  #holdBack(line: Line, millis: number): void {
    line.places = 0;
    line.openAtMillis = Math.max(line.openAtMillis, this.#environment.nowMillis() + millis);
  }

  #settle(line: Line, waiter: Waiter, result: PermitGranted | QuorateError): void {
    if (waiter.isSettled) return;
    waiter.isSettled = true;
    line.waiters.delete(waiter);
    this.#count -= 1;
    if (line.waiters.size === 0) {
      line.cancelTimer?.();
      this.#lines.delete(line.subject);
    }
    waiter.settle(result);
  }
}

function internal(cause: unknown): QuorateError {
  return new QuorateError('INTERNAL', String(cause), { isDefinite: false, cause });
}

function newLine(subject: string): Line {
  // Before the first denial nobody needs to wait for another.
  return { subject, waiters: new Set(), openAtMillis: 0, places: Infinity, cancelTimer: undefined };
}

function isDoubtful({ isAsking, doubtfulSinceMillis }: Waiter): boolean {
  return isAsking || doubtfulSinceMillis !== undefined;
}
