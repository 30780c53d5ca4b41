/** The client of a cluster: asks for grants, and answers as its fail mode says where nobody can. */
import { isBoundedInteger } from '../api/bounded.ts';
import { Denials } from './denials.ts';
import { Dispatcher, type Outcome } from './dispatcher.ts';
import { type Environment, systemEnvironment } from './environment.ts';
import { CostAboveLimitError, InvalidOptionError, QuorateError } from './errors.ts';
import type { ClientEvent } from './events.ts';
import { guarded } from './guarded.ts';
import { HttpTransport } from './http-transport.ts';
import { LocalShares } from '../limiter/local-shares.ts';
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

export interface WaitOptions {
  /** How long to wait in line, before the last question: 0 to 86,400,000, default 60,000. */
  readonly maxWaitMillis?: number;
  /** An `AbortSignal` that ends the wait. */
  readonly signal?: AbortSignalLike;
}

const DAY_MILLIS = 86_400_000;
const WAIT_MILLIS = 60_000;
/** Errors after which a fail mode decides: the cluster could not be asked, or could not decide. What is wrong with a request stays wrong. */
const UNDECIDED: ReadonlySet<string> = new Set(['UNAVAILABLE', 'INDEFINITE', 'OVERLOADED']);

/**
 * Asks the nodes of a cluster for grants. One for a process is enough: it keeps connections, knows who leads, and shares batches.
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
  readonly #shares = new LocalShares();
  readonly #lines: PermitLines;
  readonly #tell: (event: ClientEvent) => void;

  /**
   * @param environment what tests play: time, chance and the way to nodes
   * @throws InvalidOptionError naming the option and its bound
   */
  constructor(options: ClientOptions, environment?: Environment) {
    this.#settings = settingsOf(options);
    this.#tell = guarded('onEvent', this.#settings.onEvent);
    this.#environment = environment ?? systemEnvironment(new HttpTransport(this.#settings));
    this.#dispatcher = new Dispatcher(this.#environment, this.#settings, this.#tell);
    this.#denials = new Denials(this.#settings);
    this.#lines = new PermitLines(this.#environment, this.#settings);
  }

  /**
   * Asks for one grant. Only `allowed: true` is one.
   *
   * @throws InvalidRequestError, CostAboveLimitError, RequestIdConflictError, RefusedError, ClosedError; where nobody could decide and
   *   the fail mode is `closed`: UnavailableError, OverloadedError, or, if it may have been counted, IndefiniteError
   * @example
   * const answer = await client.allow({ userId: 'ada', cost: 2 });
   * if (!answer.allowed) return refuse(answer);
   */
  async allow(request: PermitRequest): Promise<PermitAnswer> {
    const drawn = this.#settings.requestIds ? this.#environment.drawRequestId() : undefined;
    return this.#allow(request, request?.requestId ?? drawn);
  }

  /**
   * Reports usage after the fact, such as the tokens of an answer that has ended. The cluster charges it whatever the limits say. What exceeds
   * a limit is debt: nothing more is granted until it has left the window. Under one `requestId` it is charged once. If a request was granted
   * an estimate under that id before, the cluster refunds the estimate.
   *
   * @throws what `allow` throws but for CostAboveLimitError, whatever the fail mode is: only the cluster can charge usage
   * @example
   * await client.allow({ userId: 'ada', cost: 500, requestId: 'answer-7' });
   * await client.settle({ userId: 'ada', cost: 734, requestId: 'answer-7' });
   */
  async settle(request: PermitRequest): Promise<PermitAnswer> {
    const drawn = this.#settings.requestIds ? this.#environment.drawRequestId() : undefined;
    return this.#allow(request, request?.requestId ?? drawn, { settle: true });
  }

  /**
   * Asks for a grant until there is one: who is denied waits for `retryAfterMillis`, in line with all who wait for the same here.
   *
   * @throws PermitTimeoutError, CostAboveLimitError, BlockedError, UnmatchedError, AbortedError, OverloadedError, and what `allow` throws
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
        // A denial ends an id: a grant under it that nobody heard of is not used so late.
        if (!isRepeat) id = own ?? draw();
        const answer = await this.#allow(asked, id, { isRepeat, doubt });
        if (answer.kind === 'denied' && answer.limit === 0)
          throw new CostAboveLimitError('nothing ever fits a limit of 0');
        return answer;
      },
    });
  }

  /** Whoever still waits gets a `ClosedError`; connections are closed. A client that is not closed does not keep its process alive. */
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
    // An id that is repeated or the caller's may have a grant already, and a time of the caller is another question each time.
    const mayBeCached =
      !isRepeat && request.requestId === undefined && timestampMillis === undefined && settle === undefined;
    const cached = mayBeCached ? this.#denials.find(subject, cost, startedMillis) : undefined;
    if (cached !== undefined) {
      this.#tell({ type: 'answered', outcome: 'denied', isCached: true, attempts: 0, tookMillis: 0 });
      return cached;
    }
    const key = onlyUserOf(request);
    const outcome = await this.#ask({ body, key, subject, isRepeatable: requestId !== undefined });
    this.#tellAnswered(outcome, startedMillis);
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
      this.#tell({ type: 'failMode', mode: 'open', allowed: true, code });
      return { kind: 'degraded', allowed: true, by: 'client' };
    }
    const { limit, windowMillis } = failMode;
    const wanted = { name: subject, limit, windowMillis, cost };
    const retryAfterMillis = this.#shares.take([wanted], this.#environment.nowMillis());
    const allowed = retryAfterMillis === 0;
    this.#tell({ type: 'failMode', mode: 'local', allowed, code });
    return { kind: 'degraded', by: 'client', allowed, ...(!allowed && { retryAfterMillis }) };
  }

  #tellAnswered({ answer, error, attempts, node }: Outcome, startedMillis: number): void {
    if (this.#settings.onEvent === undefined) return;
    this.#tell({
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
