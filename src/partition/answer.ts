/** Turns decisions of the state machine into answers for callers. */
import { UNAVAILABLE, type UnavailableReason } from '../api/refusals.ts';
import type { Answer, LoggedRequest } from '../api/user-request.ts';
import { assert } from '../limiter/assert.ts';
import type { Decision } from '../limiter/decision.ts';
import type { Conflict } from '../limiter/question.ts';

/** The answer that corresponds to a decision. */
export function answerOf(decision: Decision, requestId: string | undefined): Answer {
  const { refusal, refund, customer } = decision;
  if (refund !== undefined) {
    const { ruleId, decided, rulesVersion } = decision;
    return { kind: 'refund', refund: { ...refund, ruleId, decided, rulesVersion } };
  }
  if (decision.usedMax !== undefined)
    return invalid(
      'used',
      `used must be an integer from 0 to ${decision.usedMax}, which '${decision.ruleId}' may grant this key at once`,
    );
  if (refusal === undefined && customer !== undefined)
    return { kind: 'customer', outcome: { ...customer, decided: decision.decided } };
  if (refusal === undefined) return { kind: 'decision', decision };
  switch (refusal) {
    case 'unknown_rule':
      return unknownRule(decision.ruleId);
    case 'request_id_reused':
      assert(decision.conflict !== undefined, 'a reused request id comes with its first difference');
      return conflictAnswer(requestId ?? '', decision.conflict);
    case 'refunded':
      return refundedAnswer(requestId ?? '');
    case 'not_remembered':
      return invalid('requestId', `no grant is remembered under requestId '${requestId ?? ''}'`);
    case 'customer_changed': {
      assert(customer !== undefined, 'a changed customer comes with its record');
      return { kind: 'unavailable', reason: refusal, proposed: false, record: customer.record };
    }
    case 'at_capacity':
      // The request is in the log, but was not charged anywhere.
      return unavailable('at_capacity', true);
  }
}

/**
 * The answer to a request that entry `index` decided. If the grant comes from an earlier entry it is marked as a
 * repeat, so that reservations made for this request are released.
 */
export function answerTo(
  request: LoggedRequest,
  decision: Decision,
  { index }: { readonly index: number },
): Answer {
  const answer = answerOf(decision, request.requestId);
  const isMatched = request.ask === undefined && request.matchedBy !== undefined;
  const isRepeat = isMatched && decision.allowed && decision.decided.index !== index;
  return isRepeat && answer.kind === 'decision' ? { ...answer, isRepeat } : answer;
}

/** The answer to a request whose id belongs to a different request. */
export function conflictAnswer(requestId: string, { field, first }: Conflict): Answer {
  const value = typeof first === 'string' ? `'${first}'` : String(first);
  const before = first === undefined ? `without ${field}` : `with ${field} ${value}`;
  // The digest covers all of these and does not show which one differs.
  const asked = 'with other descriptors, or another rule, cost or timestampMillis';
  const how = field === 'descriptors' ? asked : before;
  const message = `requestId '${requestId}' was used before, ${how}: only a repetition of that request may use it again`;
  return { kind: 'conflict', field, message };
}

function refundedAnswer(requestId: string): Answer {
  const message = `requestId '${requestId}' was refunded and grants nothing more: use a new requestId`;
  return { kind: 'conflict', field: 'requestId', message };
}

/** The answer to a request that names a rule that does not exist. */
export function unknownRule(ruleId: string): Answer {
  return invalid('rule', `there is no rule '${ruleId}'`);
}

/** The answer that the request could not be decided. `proposed`: it may be in the log. */
export function unavailable(reason: UnavailableReason, proposed: boolean): Answer {
  const known = UNAVAILABLE[reason].proposed;
  assert(
    known === 'either' || proposed === (known === 'always'),
    'the reason {} contradicts `proposed`',
    reason,
  );
  return { kind: 'unavailable', reason, proposed };
}

/** The answer that a field of the request is wrong. */
export function invalid(field: string, message: string): Answer {
  return { kind: 'invalid', field, message };
}
