/**
 * The client of a Quorate cluster. It asks for grants, waits for permits and reports usage, and applies the fail mode
 * when the cluster cannot decide.
 */
import { isBoundedInteger } from '../api/bounded.ts';
import { Denials } from './denials.ts';
import { Dispatcher, type Outcome } from './dispatcher.ts';
import { type Environment, systemEnvironment } from './environment.ts';
import { CostAboveLimitError, InvalidOptionError, QuorateError } from './errors.ts';
import type { ClientEvent } from './events.ts';
import { guarded } from './guarded.ts';
import { HttpTransport } from './http-transport.ts';
import { LocalLimits } from '../limiter/local-limits.ts';
import { checkFailMode, type ClientOptions, type Settings, settingsOf } from './options.ts';
import {
  copyOf,
  encodeRequest,
  onlyUserOf,
  type PermitAnswer,
  type PermitRequest,
  subjectOf,
} from './permit.ts';
import type { AbortSignalLike } from './aborts.ts';
import { type PermitGranted, PermitLines, type Question } from './permit-lines.ts';

/** Options of `waitForPermit`. */
export interface WaitOptions {
  /**
   * Longest time to wait in line, in milliseconds: 0 to 86,400,000, default 60,000. The last request may take
   * `deadlineMillis` more.
   */
  readonly maxWaitMillis?: number;
  /** Aborting it ends the wait with an `AbortedError`. */
  readonly signal?: AbortSignalLike;
}

const DAY_MILLIS = 86_400_000;
const WAIT_MILLIS = 60_000;
/**
 * Codes of errors after which the fail mode decides: the cluster was not reached or could not decide. A faulty request
 * always throws.
 */
const UNDECIDED: ReadonlySet<string> = new Set(['UNAVAILABLE', 'INDEFINITE', 'OVERLOADED']);

/**
 * Asks the nodes of a cluster for grants. Create one client per process: it keeps connections open, remembers the
 * leaders and sends requests in batches.
 *
 * @example
 * const client = new QuorateClient({ nodes: ['http://127.0.0.1:8101', 'http://127.0.0.1:8102'] });
 * const { allowed } = await client.allow({ userId: 'ada' });
 */
export class QuorateClient {
  readonly #settings: Settings;
  readonly #environment: Environment;
  readonly #dispatcher: Dispatcher;
  readonly #denials: Denials;
  readonly #localLimits = new LocalLimits();
  readonly #lines: PermitLines;
  readonly #report: (event: ClientEvent) => void;

  /**
   * @param environment clock, randomness and transport; only tests pass their own
   * @throws InvalidOptionError with the name of the option and its bounds
   */
  constructor(options: ClientOptions, environment?: Environment) {
    this.#settings = settingsOf(options);
    this.#report = guarded('onEvent', this.#settings.onEvent);
    this.#environment = environment ?? systemEnvironment(new HttpTransport(this.#settings));
    this.#dispatcher = new Dispatcher(this.#environment, this.#settings, this.#report);
    this.#denials = new Denials(this.#settings);
    this.#lines = new PermitLines(this.#environment, this.#settings);
  }

  /**
   * Asks for one grant. The request is granted only if `allowed` is true.
   *
   * @throws InvalidRequestError, CostAboveLimitError, RequestIdConflictError, RefusedError, ClosedError. If the cluster
   *   could not decide and the fail mode is `closed`: UnavailableError, OverloadedError, or IndefiniteError if the
   *   request may have been counted.
   * @example
   * const answer = await client.allow({ userId: 'ada', cost: 2 });
   * if (!answer.allowed) return refuse(answer);
   */
  async allow(request: PermitRequest): Promise<PermitAnswer> {
    const drawn = this.#settings.requestIds ? this.#environment.drawRequestId() : undefined;
    return this.#allow(request, request?.requestId ?? drawn);
  }

  /**
   * Reports usage after the fact, for example the tokens of a finished answer. The cluster charges it even above a
   * limit. The excess is debt: nothing more is granted until the excess has left the window. Usage is charged once per
   * `requestId`. If an estimate was granted under the same id before, the cluster refunds the estimate.
   *
   * @throws the errors of `allow` except CostAboveLimitError. The fail mode does not apply, since only the cluster can
   *   charge usage.
   * @example
   * await client.allow({ userId: 'ada', cost: 500, requestId: 'answer-7' });
   * await client.settle({ userId: 'ada', cost: 734, requestId: 'answer-7' });
   */
  async settle(request: PermitRequest): Promise<PermitAnswer> {
    const drawn = this.#settings.requestIds ? this.#environment.drawRequestId() : undefined;
    return this.#allow(request, request?.requestId ?? drawn, { settle: true });
  }

  /**
   * Asks for a grant until there is one. After a denial the call waits for `retryAfterMillis`, in line with the other
   * calls of this client that wait for the same limits.
   *
   * @throws PermitTimeoutError, CostAboveLimitError, BlockedError, UnmatchedError, AbortedError, OverloadedError, and
   *   the errors of `allow`
   * @example
   * await client.waitForPermit({ userId: 'nightly-export' }, { maxWaitMillis: 10_000 });
   */
  async waitForPermit(request: PermitRequest, options: WaitOptions = {}): Promise<PermitGranted> {
    const { maxWaitMillis = WAIT_MILLIS, signal } = options;
    if (!isBoundedInteger(maxWaitMillis, 0, DAY_MILLIS))
      throw new InvalidOptionError('maxWaitMillis', `must be an integer from 0 to ${DAY_MILLIS}`);
    if (signal !== undefined && typeof signal?.addEventListener !== 'function')
      throw new InvalidOptionError('signal', 'must be an AbortSignal');
    const own = request?.requestId;
    const draw = (): string | undefined =>
      this.#settings.requestIds ? this.#environment.drawRequestId() : undefined;
    let id = own ?? draw();
    encodeRequest(request, id);
    const asked = copyOf(request);
    const { cost = 1 } = asked;
    return this.#lines.wait({
      subject: subjectOf(asked),
      cost,
      maxWaitMillis,
      signal,
      isRepeatable: id !== undefined,
      ask: async ({ isRepeat, doubt }) => {
        // After a denial the next request gets a new id. Otherwise a grant under the old id whose answer was lost would
        // be reported now, long after it was counted.
        if (!isRepeat) id = own ?? draw();
        const answer = await this.#allow(asked, id, { isRepeat, doubt });
        if (answer.kind === 'denied' && answer.limit === 0)
          throw new CostAboveLimitError('a limit of 0 never grants anything');
        return answer;
      },
    });
  }

  /**
   * Closes all connections. Calls that are still open throw a `ClosedError`. An open client does not keep its process
   * alive.
   */
  close(): void {
    this.#lines.close();
    this.#dispatcher.close();
  }

  async #allow(
    request: PermitRequest,
    requestId: string | undefined,
    { isRepeat = false, doubt, settle }: Partial<Question> & { readonly settle?: true } = {},
  ): Promise<PermitAnswer> {
    const body = encodeRequest(request, requestId, settle);
    const { cost = 1, timestampMillis, failMode = this.#settings.failMode } = request;
    checkFailMode(failMode);
    const subject = subjectOf(request);
    const startedMillis = this.#environment.nowMillis();
    // A repeated id, or an id of the caller, may already have a grant. A request with its own time may get another
    // answer each time.
    const mayBeCached =
      !isRepeat && request.requestId === undefined && timestampMillis === undefined && settle === undefined;
    const cached = mayBeCached ? this.#denials.find(subject, cost, startedMillis) : undefined;
    if (cached !== undefined) {
      this.#report({ type: 'answered', outcome: 'denied', isCached: true, attempts: 0, tookMillis: 0 });
      return cached;
    }
    const key = onlyUserOf(request);
    const outcome = await this.#ask({ body, key, subject, isRepeatable: requestId !== undefined });
    this.#reportAnswered(outcome, startedMillis);
    const { answer, error, sentMillis } = outcome;
    if (outcome.mayHaveCounted || error?.isDefinite === false) doubt?.();
    if (answer === undefined)
      return this.#undecided(error, { subject, cost, failMode: settle === true ? 'closed' : failMode });
    this.#denials.note(
      answer,
      mayBeCached ? { subject, cost, isDescribed: key === undefined, sentMillis } : undefined,
    );
    return answer;
  }

  async #ask(asked: Omit<Parameters<Dispatcher['dispatch']>[0], 'done'>): Promise<Outcome> {
    return new Promise((resolve) => {
      try {
        this.#dispatcher.dispatch({ ...asked, done: resolve });
      } catch (error) {
        if (!(error instanceof QuorateError)) throw error;
        const sentMillis = this.#environment.nowMillis();
        resolve({ error, mayHaveCounted: false, attempts: 0, node: undefined, sentMillis });
      }
    });
  }

  #undecided(
    error: QuorateError,
    { subject, cost, failMode }: { subject: string; cost: number; failMode: Settings['failMode'] },
  ): PermitAnswer {
    if (failMode === 'closed' || !UNDECIDED.has(error.code)) throw error;
    const { code } = error;
    if (failMode === 'open') {
      this.#report({ type: 'failMode', mode: 'open', allowed: true, code });
      return { kind: 'degraded', allowed: true, by: 'client' };
    }
    const { limit, windowMillis } = failMode;
    const wanted = { name: subject, limit, windowMillis, cost };
    const retryAfterMillis = this.#localLimits.take([wanted], this.#environment.nowMillis());
    const allowed = retryAfterMillis === 0;
    this.#report({ type: 'failMode', mode: 'local', allowed, code });
    return { kind: 'degraded', by: 'client', allowed, ...(!allowed && { retryAfterMillis }) };
  }

  #reportAnswered({ answer, error, attempts, node }: Outcome, startedMillis: number): void {
    if (this.#settings.onEvent === undefined) return;
    this.#report({
      type: 'answered',
      outcome: answer?.kind ?? 'error',
      isCached: false,
      attempts,
      tookMillis: this.#environment.nowMillis() - startedMillis,
      ...(node !== undefined && { node }),
      ...(answer !== undefined && 'decided' in answer && { partition: answer.decided.partition }),
      ...(error !== undefined && { code: error.code }),
    });
  }
}
