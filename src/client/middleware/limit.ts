/**
 * The middleware for all frameworks: asks for a grant, and returns whether the request passes, the response of a
 * denial, and the headers to set.
 */
import {
  RATE_LIMIT_HEADERS,
  type RateLimitHeaders,
  rateLimitHeaders,
  restoredHeaders,
  secondsCeil,
} from '../../api/rate-limit-headers.ts';
import { blockedMessage, denialMessage } from '../../api/waiting.ts';
import {
  ALLOW_STATUS,
  BLOCKED_STATUS,
  UNAVAILABLE_RETRY_SECONDS,
  UNMATCHED,
  UNMATCHED_MESSAGE,
  UNMATCHED_STATUS,
} from '../../api/refusals.ts';
import { InvalidOptionError, QuorateError } from '../errors.ts';
import { guarded } from '../guarded.ts';
import type { FailMode } from '../options.ts';
import type { PermitAnswer, PermitLimit, PermitRequest } from '../permit.ts';
import type { RequestFacts } from './facts.ts';
import { type Identifier, keyOf, knownId, type MaybeLater } from './identify.ts';

/** Options of `rateLimit`. `R` is the request type of the framework. */
export interface RateLimitOptions<R> {
  /** Usually a `QuorateClient`. */
  readonly client: { allow(request: PermitRequest): Promise<PermitAnswer> };
  /** Returns whose budget to charge. Pass either this or `descriptors`. A request without an id is refused with 400. */
  readonly identify?: Identifier<R>;
  /**
   * Descriptors of the request, by name, from which the rules find its limits. Undefined and null values are left out;
   * a request without any value is refused with 400.
   */
  readonly descriptors?: Readonly<Record<string, Identifier<R>>>;
  /** The id of the only rule to apply. Default: all rules of the cluster that match. */
  readonly rule?: string | ((request: R) => MaybeLater<string | undefined>);
  /** The cost of the request. Default 1. */
  readonly cost?: number | ((request: R) => MaybeLater<number>);
  /** Returns true for requests that are not limited. The cluster is not asked about them. */
  readonly skip?: (request: R) => MaybeLater<boolean>;
  /** Counts requests and calls `onDenied`, but lets all of them pass and sets no headers. Default false. */
  readonly shadow?: boolean;
  /** Default: the fail mode of the client. */
  readonly failMode?: FailMode;
  /** Forms of rate limit headers to set. Default `['x', 'draft']`; `[]` sets none. */
  readonly headers?: readonly RateLimitHeaders[];
  /**
   * Returns the body of a denial (429 or 403): text, or a value to send as JSON. Default: `{"error": ...}` with the
   * `error` that the cluster answers, without its other fields.
   */
  readonly body?: (answer: PermitAnswer, request: R) => unknown;
  /**
   * Called for each denial. An error that it or `onError` throws does not change the answer; the first one is a process
   * warning.
   */
  readonly onDenied?: (answer: PermitAnswer, request: R) => void;
  /** Called for each error that the client throws. With `shadow` the request still passes. */
  readonly onError?: (error: QuorateError, request: R) => void;
}

/** Response headers. Names are in lower case. */
export type Headers = Readonly<Record<string, string>>;

/** The verdict on a request: it passes, or gets this response. */
export type Verdict =
  /** @property waitMillis how long to wait before going on, because a leaky bucket queues the request */
  | { readonly passes: true; readonly headers: Headers; readonly waitMillis: number }
  | { readonly passes: false; readonly status: number; readonly headers: Headers; readonly body: string };

/** Node fires longer timers at once. */
const TIMER_MILLIS_MAX = 2 ** 31 - 1;
const PASSES: Verdict = { passes: true, headers: {}, waitMillis: 0 };
const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
const PROBLEM = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity';
/** Codes of mistakes of the service itself. They are thrown, for the framework to report. */
const MISTAKES: ReadonlySet<string> = new Set([
  'COST_ABOVE_LIMIT',
  'INVALID_OPTION',
  'INVALID_REQUEST',
  'REQUEST_ID_CONFLICT',
]);

const UNIDENTIFIED: Verdict = refusal(
  400,
  {},
  { error: { type: 'unidentified', message: 'the request does not identify its user' } },
);
const UNAVAILABLE: Verdict = {
  passes: false,
  status: ALLOW_STATUS.unavailable,
  headers: { 'content-type': PROBLEM_TYPE, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) },
  body: JSON.stringify({
    type: PROBLEM,
    title: 'Temporary Reduced Capacity',
    status: ALLOW_STATUS.unavailable,
    detail: 'the cluster cannot decide whether this request is within its limit',
  }),
};

/**
 * Returns the function that decides about one request.
 *
 * @param wallMillis the wall clock, only for `X-RateLimit-Reset`, which is an epoch time by convention
 * @throws InvalidOptionError
 */
export function limitOf<R>(
  options: RateLimitOptions<R>,
  wallMillis: () => number = Date.now,
): (request: R, facts: RequestFacts) => Promise<Verdict> {
  checkOptions(options);
  const { client, skip, shadow = false, headers: forms = ['x', 'draft'] } = options;
  const onDenied = guarded('onDenied', options.onDenied);
  const onError = guarded('onError', options.onError);
  return async (request, facts) => {
    if (skip !== undefined && (await skip(request))) return PASSES;
    try {
      const asked = await permitRequest(options, request, facts);
      if (asked === undefined) return shadow ? PASSES : UNIDENTIFIED;
      const answer = await client.allow(asked);
      if (!answer.allowed) onDenied(answer, request);
      if (shadow) return PASSES;
      const headers = headersOf(answer, forms, wallMillis());
      if (!answer.allowed) return deniedBy(answer, headers, options.body?.(answer, request));
      const { waitMillis = 0 } = answer.kind === 'granted' ? answer : {};
      return { passes: true, headers, waitMillis: Math.min(waitMillis, TIMER_MILLIS_MAX) };
    } catch (error) {
      if (!(error instanceof QuorateError)) throw error;
      onError(error, request);
      if (shadow) return PASSES;
      if (MISTAKES.has(error.code)) throw error;
      return UNAVAILABLE;
    }
  };
}

function checkOptions<R>({ client, identify, descriptors, headers = [] }: RateLimitOptions<R>): void {
  if (typeof client?.allow !== 'function') throw new InvalidOptionError('client', 'must be a QuorateClient');
  if ((identify === undefined) === (descriptors === undefined))
    throw new InvalidOptionError('identify', 'or descriptors must be set, but not both');
  const known: readonly string[] = RATE_LIMIT_HEADERS;
  if (!Array.isArray(headers) || headers.some((each) => !known.includes(each)))
    throw new InvalidOptionError('headers', `must be a list of some of ${known.join(', ')}`);
}

/** Returns the request for the cluster, or undefined if nothing identifies the request. */
async function permitRequest<R>(
  options: RateLimitOptions<R>,
  request: R,
  facts: RequestFacts,
): Promise<PermitRequest | undefined> {
  const { identify, descriptors, rule, cost, failMode } = options;
  const rest = {
    rule: typeof rule === 'function' ? await rule(request) : rule,
    cost: typeof cost === 'function' ? await cost(request) : cost,
    failMode,
  };
  if (identify !== undefined) {
    const id = knownId(await identify(request, facts));
    if (id === undefined) return undefined;
    return { userId: keyOf(id), ...rest };
  }
  const reported: Record<string, string> = {};
  const found = Object.entries(descriptors ?? {}).map(
    async ([name, of]) => [name, await of(request, facts)] as const,
  );
  for (const [name, said] of await Promise.all(found)) {
    // Empty text is a valid descriptor value, other than in an id.
    const value = said === '' ? said : knownId(said);
    if (value !== undefined) reported[name] = value;
  }
  return Object.keys(reported).length === 0 ? undefined : { descriptors: reported, ...rest };
}

function headersOf(answer: PermitAnswer, forms: readonly RateLimitHeaders[], wallMillis: number): Headers {
  if (answer.kind !== 'granted' && answer.kind !== 'denied') return {};
  const { allowed, rule: ruleId, limit, remaining, resetMillis, windowMillis } = answer;
  // A grant has no retry-after, so the headers use the time until the whole limit is free. That is too long at worst.
  const retryAfterMillis = answer.kind === 'denied' ? (answer.retryAfterMillis ?? 0) : 0;
  const limitStatus = { allowed, ruleId, limit, remaining, resetMillis, windowMillis, retryAfterMillis };
  return rateLimitHeaders(limitStatus, forms, wallMillis);
}

function deniedBy(answer: PermitAnswer, limitHeaders: Headers, body: unknown): Verdict {
  if (answer.kind === 'blocked') {
    const { retryAfterMillis: untilEnd } = answer;
    const retryAfter = untilEnd === undefined ? undefined : Math.max(1, secondsCeil(untilEnd));
    const error = { type: 'blocked', message: blockedMessage(retryAfter) };
    const reported = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
    return refusal(BLOCKED_STATUS, reported, body ?? { error });
  }
  if (answer.kind === 'unmatched')
    return refusal(UNMATCHED_STATUS, {}, body ?? { error: { type: UNMATCHED, message: UNMATCHED_MESSAGE } });
  const { retryAfterMillis } = answer as { retryAfterMillis?: number };
  const isHopeless = answer.kind === 'denied' && retryAfterMillis === undefined;
  const retryAfter = isHopeless ? undefined : Math.max(1, secondsCeil(retryAfterMillis ?? 0));
  const reported = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  const headers = { ...limitHeaders, ...reported, ...restoredHeaders(restoredMillisOf(answer)) };
  return refusal(ALLOW_STATUS.denied, headers, body ?? { error: errorOf(answer, retryAfter) });
}

function restoredMillisOf(answer: PermitAnswer): number | undefined {
  return answer.kind === 'denied' ? answer.restoredMillis : undefined;
}

/** @param retryAfter in seconds. Undefined: waiting does not help. */
function errorOf(answer: PermitAnswer, retryAfter: number | undefined): unknown {
  const { limit, windowMillis } = answer as Partial<PermitLimit>;
  return {
    type: 'rate_limit_error',
    message: denialMessage(retryAfter, restoredMillisOf(answer)),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(limit !== undefined && { limit }),
    ...(windowMillis !== undefined && { window: windowText(windowMillis) }),
  };
}

function windowText(millis: number): string {
  return millis % 1000 === 0 ? `${millis / 1000}s` : `${millis}ms`;
}

function refusal(status: number, headers: Headers, body: unknown): Verdict {
  const isText = typeof body === 'string';
  const type = isText ? 'text/plain; charset=utf-8' : JSON_TYPE;
  return {
    passes: false,
    status,
    headers: { ...headers, 'content-type': type },
    body: isText ? body : JSON.stringify(body),
  };
}
