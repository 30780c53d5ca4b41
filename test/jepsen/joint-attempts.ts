/**
 * Translates requests of clients into the bodies and commands of each API, and the answers into events of the history.
 * Sends nothing and judges nothing.
 */
import type { Decoded } from '../resp/decode-replies.ts';
import { fieldsOf, numberOrNull, type OperationClass, type Outcome, textOrNull } from './history.ts';
import type { Ending } from './history-line.ts';
import type { Ask, Listener, LimitReported, Receipt, Refund } from './joint-history.ts';
import { limitsOf, NAMED_RULE, NAMED_WINDOW, type Subject } from './joint-rules.ts';
import type { RedisEnding } from './redis-client.ts';

/** A request that may be repeated under its id, through any API. */
export interface Wish {
  readonly subject: Subject;
  readonly cost: number;
  /** The cost is settled after the fact. */
  readonly settled: boolean;
  readonly requestId: string;
}

/** The listener, the node and the time of an attempt. */
export interface Sent {
  readonly listener: Listener;
  readonly node: number;
  readonly invokeNanos: number;
}

/** The body for `POST /v1/allow`. */
export function bodyOf({ subject, cost, settled, requestId }: Wish): Record<string, unknown> {
  const rest = { ...(cost !== 1 && { cost }), ...(settled && { settle: true }), requestId };
  return subject.kind === 'described'
    ? { descriptors: subject.descriptors, ...rest }
    : { userId: subject.user, rule: NAMED_RULE, ...rest };
}

export function commandOf({ subject, cost, settled, requestId }: Wish): string[] {
  const options = [...(cost === 1 ? [] : ['COST', `${cost}`]), ...(settled ? ['SETTLE'] : [])];
  const rest = [...options, 'ID', requestId];
  if (subject.kind === 'named') return ['ALLOW', subject.user, 'RULE', NAMED_RULE, ...rest];
  const descriptors = Object.entries(subject.descriptors);
  return ['MATCH', `${descriptors.length}`, ...descriptors.flat(), ...rest];
}

/** The event for an answer over HTTP, or for one of a batch, which has its own status. */
export function askOf(wish: Wish, sent: Sent, completeNanos: number, outcome: Outcome): Ask {
  const asked = askedBy(wish, sent);
  if (outcome.kind === 'broken')
    return { ...asked, ...brokenEnding(outcome, completeNanos), ...NOT_REPORTED };
  const { status, body } = outcome;
  const fields = fieldsOf(body);
  if (fields['blocked'] === true)
    return {
      ...asked,
      ...NOT_REPORTED,
      completeNanos,
      status,
      class: 'ok',
      error: null,
      allowed: false,
      blocked: true,
    };
  const ending = { completeNanos, ...endingOf(status, body) };
  if (ending.class !== 'ok') return { ...asked, ...ending, ...NOT_REPORTED };
  const limits = Array.isArray(fields['limits']) ? fields['limits'] : [fields];
  const reported = limits.map(reportOf).filter((each) => each !== undefined);
  return {
    ...asked,
    ...ending,
    ...NOT_REPORTED,
    allowed: status === 200,
    reported,
    receipt: receiptIn(body),
  };
}

/** The reply is five numbers and, for `MATCH`, the rule. Without a limit it is -1; a blocked key has the limit 0. */
export function askOfReply(wish: Wish, sent: Sent, { completeNanos, ending }: RedisEnding): Ask {
  const asked = askedBy(wish, sent);
  if (ending.kind === 'broken') return { ...asked, ...brokenEnding(ending, completeNanos), ...NOT_REPORTED };
  const { reply } = ending;
  if (!Array.isArray(reply)) return { ...asked, completeNanos, ...endingOfError(reply), ...NOT_REPORTED };
  const [allowed, limit, remaining] = reply.map(numberOrNull);
  const rule = wish.subject.kind === 'named' ? NAMED_WINDOW : textOrNull(reply[5]);
  const blocked = allowed === 0 && limit === 0;
  const isReported = !blocked && rule !== null && typeof limit === 'number' && typeof remaining === 'number';
  return {
    ...asked,
    completeNanos,
    status: allowed === 1 ? 200 : blocked ? BLOCKED : 429,
    class: 'ok',
    error: null,
    allowed: allowed === 1,
    blocked,
    reported: isReported ? [{ rule, limit, remaining }] : [],
    receipt: null,
  };
}

export interface RefundWish {
  readonly key: string;
  readonly requestId: string;
}

export function refundOf(wish: RefundWish, sent: Sent, completeNanos: number, outcome: Outcome): Refund {
  const asked = { op: 'refund', ...wish, ...sent } as const;
  if (outcome.kind === 'broken')
    return { ...asked, ...brokenEnding(outcome, completeNanos), ...NOT_REFUNDED };
  const { status, body } = outcome;
  const fields = fieldsOf(body);
  const { refunded } = fields;
  // 404 is an answer, too.
  if ((status !== 200 && status !== 404) || typeof refunded !== 'boolean')
    return { ...asked, completeNanos, ...endingOf(status, body), ...NOT_REFUNDED };
  const ending = { completeNanos, status, class: 'ok', error: null } as const;
  if (!refunded) return { ...asked, ...ending, ...NOT_REFUNDED, refunded };
  const grant = { rule: textOrNull(fields['rule']), cost: numberOrNull(fields['cost']) };
  return { ...asked, ...ending, refunded, ...grant, receipt: receiptIn(body) };
}

/** `[refunded, rule, cost]` */
export function refundOfReply(wish: RefundWish, sent: Sent, { completeNanos, ending }: RedisEnding): Refund {
  const asked = { op: 'refund', ...wish, ...sent } as const;
  if (ending.kind === 'broken') return { ...asked, ...brokenEnding(ending, completeNanos), ...NOT_REFUNDED };
  const { reply } = ending;
  if (!Array.isArray(reply)) return { ...asked, completeNanos, ...endingOfError(reply), ...NOT_REFUNDED };
  const refunded = reply[0] === 1;
  const answered = { status: refunded ? 200 : 404, class: 'ok', error: null } as const;
  if (!refunded) return { ...asked, completeNanos, ...answered, ...NOT_REFUNDED, refunded };
  const grant = { rule: textOrNull(reply[1]), cost: numberOrNull(reply[2]), receipt: null };
  return { ...asked, completeNanos, ...answered, refunded, ...grant };
}

/** A settlement refunds the grant of the same id once it is done. */
export function refundBySettling(
  wish: RefundWish,
  { listener, node, invokeNanos, completeNanos, status, class: outcome, error, allowed }: Ask,
  grant: Pick<Refund, 'rule' | 'cost' | 'receipt'>,
): Refund {
  const ending = { listener, node, invokeNanos, completeNanos, status, class: outcome, error };
  const reported = allowed === true ? { refunded: true, ...grant } : NOT_REFUNDED;
  return { op: 'refund', ...wish, ...ending, ...reported };
}

const NOT_REPORTED = { allowed: null, blocked: false, reported: [], receipt: null } as const;
/** The status of a request that is denied because an operator blocked one of its keys, not by a limit. */
const BLOCKED = 403;
const NOT_REFUNDED = { refunded: null, rule: null, cost: null, receipt: null } as const;

function askedBy(
  { subject, cost, settled, requestId }: Wish,
  sent: Sent,
): Pick<Ask, 'op' | 'limits' | 'cost' | 'settled' | 'requestId'> & Sent {
  return { op: 'ask', limits: limitsOf(subject), cost, settled, requestId, ...sent };
}

type Outcomes = Pick<Ending, 'status' | 'class' | 'error'>;

function brokenEnding(
  { code, sent }: Extract<Outcome, { kind: 'broken' }>,
  completeNanos: number,
): Outcomes & Pick<Ending, 'completeNanos'> {
  return { completeNanos, status: 0, class: sent ? 'info' : 'fail', error: code };
}

/**
 * The class of an HTTP answer. Malformed and conflicting requests are refused, and a 503 may state that nothing was
 * proposed.
 */
export function endingOf(status: number, body: unknown): Outcomes {
  if (status === 200 || status === 429) return { status, class: 'ok', error: null };
  const fields = fieldsOf(body);
  const isUnproposed = status === 503 && fields['proposed'] === false;
  const isRefused = (status >= 400 && status < 500) || isUnproposed;
  const outcome: OperationClass = isRefused ? 'fail' : 'info';
  const why = textOrNull(fields['reason']) ?? textOrNull(fieldsOf(fields['error'])['type']);
  return { status, class: outcome, error: why ?? `status ${status}` };
}

/** The reply is an error, not an array. It does not show whether the request was proposed. */
function endingOfError(reply: Decoded): Outcomes {
  const isError = typeof reply === 'object' && reply !== null && 'error' in reply;
  const error = isError ? reply.error : `answered ${JSON.stringify(reply)}`;
  if (error.startsWith('ERR')) return { status: 400, class: 'fail', error };
  return { status: error.startsWith('UNAVAILABLE') ? 503 : 500, class: 'info', error };
}

function reportOf(value: unknown): LimitReported | undefined {
  const fields = fieldsOf(value);
  const [rule, limit, remaining] = [
    textOrNull(fields['rule']),
    numberOrNull(fields['limit']),
    numberOrNull(fields['remaining']),
  ];
  return rule === null || limit === null || remaining === null ? undefined : { rule, limit, remaining };
}

function receiptIn(body: unknown): Receipt | null {
  const decided = fieldsOf(fieldsOf(body)['decided']);
  const group = numberOrNull(decided['partition']);
  const index = numberOrNull(decided['index']);
  const term = numberOrNull(decided['term']);
  const timeMillis = numberOrNull(decided['timeMillis']);
  if (group === null || index === null || term === null || timeMillis === null) return null;
  return { group, index, position: numberOrNull(decided['position']), term, timeMillis };
}
