/**
 * Formats the answers about a user in the forms of the commands. Only a decision can say `allowed`, or that no rule
 * limits the request.
 */
import type { ConflictingId, Invalid, LimitStatus, Unavailable } from '../../api/answer.ts';
import type { AskAnswer } from '../../api/question.ts';
import type { PeekAnswer } from '../../api/peek.ts';
import type { RefundQuestionAnswer } from '../../api/refund.ts';
import { UNAVAILABLE, UNMATCHED } from '../../api/refusals.ts';
import { waitHelps } from '../../api/waiting.ts';
import { error, type ErrorReply, failed, type Reply } from '../reply.ts';
import type { ReplyWriter } from '../reply-writer.ts';

/** The value of limit and remaining if no limit applies. */
const NO_LIMIT = -1;

/**
 * The value of the wait if no wait helps: the key is blocked without an end, the limit is 0, or no rule matches and
 * such requests are denied.
 */
const NO_WAIT = -1;

function waitOf(keyStatus: LimitStatus & { readonly isBlocked?: true }): number {
  return waitHelps(keyStatus) ? keyStatus.retryAfterMillis : NO_WAIT;
}

/** The last element of a denial because no rule matches. */
const UNMATCHED_WORD = 'UNMATCHED';

/** The last element of a denial that a restore causes. The wait lasts until no grants are missing any more. */
const RESTORED = 'RESTORED';

/**
 * Writes the answer of `ALLOW`: `[allowed 0/1, limit, remaining, retryAfterMillis, resetMillis]`. It is always five
 * integers, so that clients can parse every answer the same way; `MATCH` and `PEEK` give the reason. Special cases:
 *
 * - blocked, or denied because no rule matches: `[0, 0, 0, -1, 0]`; with the wait if the block has an end
 * - no rule limits the request: `[1, -1, -1, 0, 0]`
 */
export function writeAllow(writer: ReplyWriter, answer: AskAnswer): void {
  if (answer.kind === 'unlimited') return writer.fiveIntegers(1, NO_LIMIT, NO_LIMIT, 0, 0);
  if (answer.kind === 'unmatched') return writer.fiveIntegers(0, 0, 0, NO_WAIT, 0);
  if (answer.kind === 'degraded')
    return writer.fiveIntegers(answer.allowed ? 1 : 0, NO_LIMIT, NO_LIMIT, answer.retryAfterMillis, 0);
  if (answer.kind !== 'decision') return writeRefusal(writer, answer);
  const { allowed, limit, remaining, resetMillis } = answer.decision;
  writer.fiveIntegers(allowed ? 1 : 0, limit, remaining, waitOf(answer.decision), resetMillis);
}

/**
 * The answer of `MATCH`: `[allowed 0/1, limit, remaining, retryAfterMillis, resetMillis, rule]` of the limit that
 * binds. If no rule limits the request: `[1, -1, -1, 0, 0, null]`. A seventh element gives a special reason:
 * `DEGRADED`: fail modes decided; `RESTORED`: grants are missing after a restore; `UNMATCHED`: no rule matches.
 */
export function matchReply(answer: AskAnswer): Reply {
  if (answer.kind === 'unlimited') return [1, NO_LIMIT, NO_LIMIT, 0, 0, null];
  if (answer.kind === 'unmatched') return [0, 0, 0, NO_WAIT, 0, null, UNMATCHED_WORD];
  if (answer.kind === 'degraded') {
    const { allowed, retryAfterMillis, ruleIds } = answer;
    return [allowed ? 1 : 0, NO_LIMIT, NO_LIMIT, retryAfterMillis, 0, ruleIds[0] ?? null, 'DEGRADED'];
  }
  if (answer.kind !== 'decision') return refusal(answer);
  const { allowed, limit, remaining, resetMillis, ruleId, restoredMillis } = answer.decision;
  const reply = [allowed ? 1 : 0, limit, remaining, waitOf(answer.decision), resetMillis, ruleId];
  return restoredMillis === undefined ? reply : [...reply, RESTORED];
}

/**
 * The answer of `PEEK`: for each limit `[rule, limit, remaining, retryAfterMillis, resetMillis, windowMillis]`,
 * possibly with `RESTORED` at the end. It is never five integers, so it cannot be mistaken for a grant. If no rule
 * matches the key and such requests are denied: one row with the name `unmatched`.
 */
export function statusReply(answer: PeekAnswer): Reply {
  switch (answer.kind) {
    case 'keyStatus':
      if (answer.keyStatus.isUnmatched === true) return [[UNMATCHED, 0, 0, NO_WAIT, 0, 0]];
      return answer.keyStatus.limits.map((keyStatus) => {
        const { ruleId, limit, remaining, resetMillis, windowMillis } = keyStatus;
        const row = [ruleId, limit, remaining, waitOf(keyStatus), resetMillis, windowMillis];
        return keyStatus.restoredMillis === undefined ? row : [...row, RESTORED];
      });
    case 'invalid':
      return failed(answer.message);
    case 'unavailable':
      return unavailable(answer, 'nothing was counted');
  }
}

/**
 * The answer of `REFUND`: `[1, rule, cost]` of the refunded grant, or `[0, null, 0]` if no grant is remembered under
 * the id.
 */
export function refundReply(answer: RefundQuestionAnswer): Reply {
  switch (answer.kind) {
    case 'unlimited':
      return [0, null, 0];
    case 'refund': {
      const { refunded, ruleId, cost } = answer.refund;
      return refunded ? [1, ruleId, cost] : [0, null, 0];
    }
    case 'invalid':
      return failed(answer.message);
    case 'unavailable':
      return unavailable(
        answer,
        answer.proposed ? 'it may have been refunded, and may be asked for again' : 'nothing was refunded',
      );
  }
}

/**
 * Writes the answer of a command if it is no decision. A limit that the request states itself is always decided or
 * refused, so other kinds cannot occur.
 */
export function writeRefusal(writer: ReplyWriter, answer: Exclude<AskAnswer, { kind: 'decision' }>): void {
  const isRefused = answer.kind === 'invalid' || answer.kind === 'conflict' || answer.kind === 'unavailable';
  writer.error((isRefused ? refusal(answer) : failed('there is no such limit')).text);
}

/** The error for a request that was not decided. */
export function refusal(answer: Invalid | ConflictingId | Unavailable): ErrorReply {
  switch (answer.kind) {
    case 'invalid':
    case 'conflict':
      return failed(answer.message);
    case 'unavailable': {
      const doubt = answer.proposed ? ', but the request may have been counted' : '';
      return unavailable(answer, `nothing was granted${doubt}`);
    }
  }
}

/** @param outcome what this means for the request */
function unavailable({ reason }: Unavailable, outcome: string): ErrorReply {
  return error(`UNAVAILABLE ${reason} ${UNAVAILABLE[reason].text}; ${outcome}`);
}
