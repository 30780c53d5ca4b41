/** Formats an answer as an HTTP response: status, headers, body. Pure. */
import type { Decision, Invalid, LimitStatus } from '../api/answer.ts';
import type { DegradedAnswer, AskAnswer, WouldDeny } from '../api/question.ts';
import { restoredHeaders, secondsCeil } from '../api/rate-limit-headers.ts';
import {
  ALLOW_STATUS,
  BLOCKED_STATUS,
  UNAVAILABLE,
  UNAVAILABLE_RETRY_SECONDS,
  type UnavailableReason,
  UNMATCHED,
  UNMATCHED_MESSAGE,
  UNMATCHED_STATUS,
} from '../api/refusals.ts';
import { blockedMessage, denialMessage, waitHelps } from '../api/waiting.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types';
const PROBLEM_JSON_TYPE = 'application/problem+json; charset=utf-8';

/** Status and body of an answer, alone or in a batch. */
export interface FormattedBody {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/**
 * The response to a request for a grant. @param limitHeaders the rate limit header fields of a decision, in the
 * configured forms
 */
export function formatAnswer(
  answer: AskAnswer,
  partition: number,
  limitHeaders: Readonly<Record<string, string>> = {},
): HttpAnswer {
  const { status, body } = formatBody(answer, partition);
  return { status, headers: Object.assign(headersOf(answer), limitHeaders), body };
}

/** Status and body, also of an answer in a batch. Every body has `allowed`, and it is true only for grants. */
export function formatBody(answer: AskAnswer, partition: number): FormattedBody {
  const formatted = formatAnswered(answer, partition);
  if (answer.wouldDeny === undefined) return formatted;
  return { ...formatted, body: { ...formatted.body, wouldDeny: answer.wouldDeny.map(formatStatus) } };
}

function formatAnswered(answer: AskAnswer, partition: number): FormattedBody {
  switch (answer.kind) {
    case 'decision':
      if (answer.decision.isBlocked === true) return formatBlocked(answer.decision, partition);
      return answer.decision.allowed ? formatGrant(answer, partition) : formatDenial(answer, partition);
    case 'invalid':
      return formatFault(ALLOW_STATUS.invalid, 'invalid_request', answer);
    case 'conflict':
      return formatConflict(answer);
    case 'unavailable':
      return formatUnavailable(answer.reason, answer.proposed);
    case 'unlimited':
      return {
        status: ALLOW_STATUS.granted,
        body: { allowed: true, unlimited: true, rulesVersion: answer.rulesVersion },
      };
    case 'unmatched':
      return formatUnmatched(answer.rulesVersion);
    case 'degraded':
      return formatDegraded(answer);
  }
}

function headersOf(answer: AskAnswer): Record<string, string> {
  switch (answer.kind) {
    case 'decision': {
      const { allowed, retryAfterMillis, restoredMillis } = answer.decision;
      const hasWait = !allowed && waitHelps(answer.decision);
      const retryAfter = hasWait ? { 'retry-after': String(secondsCeil(retryAfterMillis)) } : {};
      return { 'content-type': JSON_TYPE, ...retryAfter, ...restoredHeaders(restoredMillis) };
    }
    case 'degraded': {
      const { allowed, retryAfterMillis } = answer;
      const retryAfter = allowed ? {} : { 'retry-after': String(secondsCeil(retryAfterMillis)) };
      return { 'content-type': JSON_TYPE, ...retryAfter };
    }
    case 'invalid':
    case 'conflict':
    case 'unlimited':
    case 'unmatched':
      return { 'content-type': JSON_TYPE };
    case 'unavailable':
      return { 'content-type': PROBLEM_JSON_TYPE, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
  }
}

type Decided = Extract<AskAnswer, { kind: 'decision' }>;
type Conflict = Extract<AskAnswer, { kind: 'conflict' }>;

function formatGrant({ decision, key }: Decided, partition: number): FormattedBody {
  const { limit, windowMillis, remaining, resetMillis, waitMillis, ruleId: rule, decided } = decision;
  const { rulesVersion } = decision;
  const wait = waitMillis === undefined ? {} : { waitMillis };
  return {
    status: ALLOW_STATUS.granted,
    body: {
      allowed: true,
      limit,
      windowMillis,
      remaining,
      resetMillis,
      ...wait,
      rule,
      key,
      rulesVersion,
      ...limitsOf(decision),
      decided: { partition, ...decided },
    },
  };
}

/** The status of every limit, if the request is under several. */
function limitsOf({ limits }: Decision): { readonly limits?: readonly unknown[] } {
  if (limits === undefined) return {};
  return { limits: limits.map(formatStatus) };
}

function formatStatus({ ruleId: rule, retryAfterMillis, ...limit }: LimitStatus | WouldDeny): unknown {
  return { rule, ...limit, ...(waitHelps(limit) && { retryAfterMillis }) };
}

function formatDenial({ decision, key }: Decided, partition: number): FormattedBody {
  const { limit, remaining, resetMillis, retryAfterMillis, windowMillis, ruleId: rule } = decision;
  const { decided, rulesVersion, restoredMillis } = decision;
  const restored = restoredMillis === undefined ? {} : { reason: 'restored', restoredMillis };
  const hasWait = waitHelps(decision);
  const retryAfter = secondsCeil(retryAfterMillis);
  return {
    status: ALLOW_STATUS.denied,
    body: {
      allowed: false,
      limit,
      windowMillis,
      remaining,
      resetMillis,
      ...(hasWait && { retryAfterMillis }),
      ...restored,
      rule,
      key,
      rulesVersion,
      ...limitsOf(decision),
      decided: { partition, ...decided },
      error: {
        type: 'rate_limit_error',
        message: denialMessage(hasWait ? retryAfter : undefined, restoredMillis),
        ...(hasWait && { retry_after: retryAfter }),
        limit,
        window: formatWindow(windowMillis),
      },
    },
  };
}

/**
 * A blocked request gets no limits in its answer, because no limit is the reason. It gets a wait only if the block
 * has an end.
 */
function formatBlocked(decision: Decision, partition: number): FormattedBody {
  const { ruleId, decided, retryAfterMillis } = decision;
  const rule = ruleId === '' ? {} : { rule: ruleId };
  const hasWait = waitHelps(decision);
  const message = blockedMessage(hasWait ? secondsCeil(retryAfterMillis) : undefined);
  const error = { type: 'blocked', message };
  const wait = hasWait ? { retryAfterMillis } : {};
  return {
    status: BLOCKED_STATUS,
    body: { allowed: false, blocked: true, ...wait, ...rule, decided: { partition, ...decided }, error },
  };
}

function formatUnmatched(rulesVersion: number): FormattedBody {
  const error = { type: UNMATCHED, message: UNMATCHED_MESSAGE };
  return { status: UNMATCHED_STATUS, body: { allowed: false, reason: UNMATCHED, rulesVersion, error } };
}

/** The answer by the fail modes of rules. It has no receipt. */
function formatDegraded(answer: DegradedAnswer): FormattedBody {
  const { allowed, ruleIds: rules, retryAfterMillis, rulesVersion } = answer;
  if (allowed)
    return { status: ALLOW_STATUS.granted, body: { allowed, degraded: true, rules, rulesVersion } };
  const retryAfter = secondsCeil(retryAfterMillis);
  const message = `No node can decide, and what this node may grant on its own is used up. Retry after ${retryAfter} s.`;
  return {
    status: ALLOW_STATUS.denied,
    body: {
      allowed,
      degraded: true,
      rules,
      rulesVersion,
      retryAfterMillis,
      error: { type: 'rate_limit_error', message, retry_after: retryAfter },
    },
  };
}

function formatUnavailable(reason: UnavailableReason, proposed: boolean): FormattedBody {
  const status = ALLOW_STATUS.unavailable;
  return {
    status,
    body: {
      type: `${PROBLEM_TYPES}#temporary-reduced-capacity`,
      title: 'Temporary Reduced Capacity',
      status,
      detail: UNAVAILABLE[reason].text,
      allowed: false,
      reason,
      proposed,
    },
  };
}

/** The response to a malformed request. */
export function formatInvalid(
  field: string,
  message: string,
  status: number = ALLOW_STATUS.invalid,
): HttpAnswer {
  return {
    ...formatFault(status, 'invalid_request', { field, message }),
    headers: { 'content-type': JSON_TYPE },
  };
}

function formatFault(
  status: number,
  type: string,
  { field, message }: Pick<Invalid, 'field' | 'message'>,
): FormattedBody {
  return { status, body: { allowed: false, error: { type, field, message } } };
}

/**
 * A digest covers all that a request says, so a difference in it is reported as `descriptors`. The caller may have sent
 * none: the field that it has to change is its id.
 */
function formatConflict({ field, message }: Conflict): FormattedBody {
  const type = field === 'requestId' ? 'request_id_refunded' : 'request_id_reused';
  const shown = field === 'descriptors' ? 'requestId' : field;
  return formatFault(ALLOW_STATUS.conflict, type, { field: shown, message });
}

function formatWindow(windowMillis: number): string {
  return windowMillis % 1000 === 0 ? `${windowMillis / 1000}s` : `${windowMillis}ms`;
}
