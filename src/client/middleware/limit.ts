/** What middleware does with a request, whatever the framework: asks for a grant, and says what to answer and which headers to set. */
import {
  RATE_LIMIT_HEADERS,
  type RateLimitHeaders,
  rateLimitHeaders,
  secondsCeil,
} from '../../api/rate-limit-headers.ts';
import { denialMessage, restoredHeaders } from '../../api/restored.ts';
import { blockedMessage } from '../../api/waiting.ts';
import { ALLOW_STATUS, BLOCKED_STATUS, UNAVAILABLE_RETRY_SECONDS } from '../../api/refusals.ts';
import { UNMATCHED, UNMATCHED_MESSAGE, UNMATCHED_STATUS } from '../../api/unmatched.ts';
import { InvalidOptionError, QuorateError } from '../errors.ts';
import { guarded } from '../guarded.ts';
import type { FailMode } from '../options.ts';
import type { PermitAnswer, PermitLimit, PermitRequest } from '../permit.ts';
import type { RequestFacts } from './facts.ts';
import { type Identifier, keyOf, knownId, type MaybeLater } from './identify.ts';

/** `R` is the request of the framework. */
export interface RateLimitOptions<R> {
  /** A `QuorateClient`. */
  readonly client: { allow(request: PermitRequest): Promise<PermitAnswer> };
  /** Whose budget. One of this and `descriptors`. Who cannot be identified is refused with 400. */
  readonly identify?: Identifier<R>;
  /** What the request is, for rules that find their limits themselves. What is undefined or null is left out; all of it: 400. */
  readonly descriptors?: Readonly<Record<string, Identifier<R>>>;
  /** By this rule alone. Default: by all of the cluster that match. */
  readonly rule?: string | ((request: R) => MaybeLater<string | undefined>);
  /** Default 1. */
  readonly cost?: number | ((request: R) => MaybeLater<number>);
  /** True: this request is not limited, and nothing is asked. */
  readonly skip?: (request: R) => MaybeLater<boolean>;
  /** Asks and counts, tells `onDenied`, and lets everything through, without headers. Default false. */
  readonly shadow?: boolean;
  /** Default: that of the client. */
  readonly failMode?: FailMode;
  /** Forms of headers that tell how a client stands; default `['x', 'draft']`, none with `[]`. */
  readonly headers?: readonly RateLimitHeaders[];
  /** The body of a denial (429): text, or what becomes JSON. Default: that of the cluster. */
  readonly body?: (answer: PermitAnswer, request: R) => unknown;
  /** Told of every denial. What it or `onError` throws changes no answer, and is a warning of the process once. */
  readonly onDenied?: (answer: PermitAnswer, request: R) => void;
  /** Told of every error of the client, whatever is answered then. */
  readonly onError?: (error: QuorateError, request: R) => void;
}

/** Header names in lower case. */
export type Headers = Readonly<Record<string, string>>;

export type Verdict =
  /** @property waitMillis of a leaky bucket that queues: go on after so long */
  | { readonly passes: true; readonly headers: Headers; readonly waitMillis: number }
  | { readonly passes: false; readonly status: number; readonly headers: Headers; readonly body: string };

/** Longer timers end at once. */
const TIMER_MILLIS_MAX = 2 ** 31 - 1;
const PASSES: Verdict = { passes: true, headers: {}, waitMillis: 0 };
const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
const PROBLEM = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity';
/** These are a mistake of the service that asks: the framework is to say so. */
const MISTAKES: ReadonlySet<string> = new Set([
  'COST_ABOVE_LIMIT',
  'INVALID_OPTION',
  'INVALID_REQUEST',
  'REQUEST_ID_CONFLICT',
]);

const UNIDENTIFIED: Verdict = refusal(
  400,
  {},
  { error: { type: 'unidentified', message: 'the request does not say whose it is' } },
);
const UNAVAILABLE: Verdict = {
  passes: false,
  status: ALLOW_STATUS.unavailable,
  headers: { 'content-type': PROBLEM_TYPE, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) },
  body: JSON.stringify({
    type: PROBLEM,
    title: 'Temporary Reduced Capacity',
    status: ALLOW_STATUS.unavailable,
    detail: 'nobody can decide whether this request is within its limit',
  }),
};

/**
 * @param wallMillis of this service: only for `X-RateLimit-Reset`, an epoch time by convention
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
    throw new InvalidOptionError('identify', 'or descriptors must be there, and not both');
  const known: readonly string[] = RATE_LIMIT_HEADERS;
  if (!Array.isArray(headers) || headers.some((each) => !known.includes(each)))
    throw new InvalidOptionError('headers', `must be a list of some of ${known.join(', ')}`);
}

/** Undefined: nobody knows whose it is. */
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
  const told: Record<string, string> = {};
  const found = Object.entries(descriptors ?? {}).map(
    async ([name, of]) => [name, await of(request, facts)] as const,
  );
  for (const [name, said] of await Promise.all(found)) {
    // Of what a request is, nothing is a value like others.
    const value = said === '' ? said : knownId(said);
    if (value !== undefined) told[name] = value;
  }
  return Object.keys(told).length === 0 ? undefined : { descriptors: told, ...rest };
}

function headersOf(answer: PermitAnswer, forms: readonly RateLimitHeaders[], wallMillis: number): Headers {
  if (answer.kind !== 'granted' && answer.kind !== 'denied') return {};
  const { allowed, rule: ruleId, limit, remaining, resetMillis, windowMillis } = answer;
  // Of a grant nobody tells the time to the next: until all is free is longer, never shorter.
  const retryAfterMillis = answer.kind === 'denied' ? (answer.retryAfterMillis ?? 0) : 0;
  const standing = { allowed, ruleId, limit, remaining, resetMillis, windowMillis, retryAfterMillis };
  return rateLimitHeaders(standing, forms, wallMillis);
}

function deniedBy(answer: PermitAnswer, limitHeaders: Headers, body: unknown): Verdict {
  if (answer.kind === 'blocked') {
    const { retryAfterMillis: untilEnd } = answer;
    const retryAfter = untilEnd === undefined ? undefined : Math.max(1, secondsCeil(untilEnd));
    const error = { type: 'blocked', message: blockedMessage(retryAfter) };
    const told = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
    return refusal(BLOCKED_STATUS, told, body ?? { error });
  }
  if (answer.kind === 'unmatched')
    return refusal(UNMATCHED_STATUS, {}, body ?? { error: { type: UNMATCHED, message: UNMATCHED_MESSAGE } });
  const { retryAfterMillis } = answer as { retryAfterMillis?: number };
  const isHopeless = answer.kind === 'denied' && retryAfterMillis === undefined;
  const retryAfter = isHopeless ? undefined : Math.max(1, secondsCeil(retryAfterMillis ?? 0));
  const told = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  const headers = { ...limitHeaders, ...told, ...restoredHeaders(restoredMillisOf(answer)) };
  return refusal(ALLOW_STATUS.denied, headers, body ?? { error: errorOf(answer, retryAfter) });
}

function restoredMillisOf(answer: PermitAnswer): number | undefined {
  return answer.kind === 'denied' ? answer.restoredMillis : undefined;
}

/** @param retryAfter in seconds; undefined: no wait helps */
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
