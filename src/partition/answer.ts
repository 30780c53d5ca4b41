/** The answers a request for a grant can get, from the partition up to the front doors. */
import type { NodeId } from '../../raft/types.ts';
import { assert } from '../limiter/assert.ts';
import type { Decision } from '../limiter/decision.ts';
import type { Conflict, FingerprintField } from '../limiter/fingerprint.ts';

/**
 * Why no decision could be made.
 * - `no_leader`: no leader was known before the deadline
 * - `deadline`: a leader had the request but did not answer in time
 * - `overloaded`: a bounded queue is full
 * - `low_disk`: the leader is close to a full disk
 * - `at_capacity`: what would have to be remembered of the request has no room
 * - `starting`: the leader has no rules yet, or the node that was asked is not up yet
 * - `unknown_outcome`: the request was proposed, and whether it was granted cannot be known here
 * - `not_member`: the node that was asked belongs to the cluster no more, or bears an id that is another's
 */
export type UnavailableReason =
  | 'no_leader'
  | 'deadline'
  | 'overloaded'
  | 'low_disk'
  | 'at_capacity'
  | 'starting'
  | 'unknown_outcome'
  | 'not_member';

export const UNAVAILABLE_REASONS: readonly UnavailableReason[] = [
  'no_leader',
  'deadline',
  'overloaded',
  'low_disk',
  'at_capacity',
  'starting',
  'unknown_outcome',
  'not_member',
];

export type Answer =
  | { readonly kind: 'decision'; readonly decision: Decision }
  /** The request can never be decided as it is. */
  | { readonly kind: 'invalid'; readonly field: string; readonly message: string }
  /** Its request id belongs to another request, which differs in `field`. Nothing was charged. */
  | { readonly kind: 'conflict'; readonly field: FingerprintField; readonly message: string }
  /** Denied because nobody could decide (P3). `proposed` false: certainly nothing reached the log. */
  | { readonly kind: 'unavailable'; readonly reason: UnavailableReason; readonly proposed: boolean }
  /** Only between nodes: ask `leader`, who leads in `term`, instead (0: nobody knows). Nothing reached the log. */
  | { readonly kind: 'notLeader'; readonly leader: NodeId; readonly term: number };

/** What a decision of the state machine is to those who asked. */
export function answerOf(decision: Decision, requestId: string | undefined): Answer {
  const { refusal } = decision;
  if (refusal === undefined) return { kind: 'decision', decision };
  switch (refusal) {
    case 'unknown_rule':
      return invalid('rule', `there is no rule '${decision.ruleId}'`);
    case 'request_id_reused':
      assert(decision.conflict !== undefined, 'a reused request id differs in something');
      return conflictAnswer(requestId ?? '', decision.conflict);
    case 'at_capacity':
      // It is in the log, though it counted nowhere.
      return unavailable('at_capacity', true);
  }
}

export function conflictAnswer(requestId: string, { field, first }: Conflict): Answer {
  const value = typeof first === 'string' ? `'${first}'` : String(first);
  const before = first === undefined ? `without ${field}` : `with ${field} ${value}`;
  const message = `requestId '${requestId}' was used before, ${before}: only a repetition of that request may use it again`;
  return { kind: 'conflict', field, message };
}

export function unavailable(reason: UnavailableReason, proposed: boolean): Answer {
  return { kind: 'unavailable', reason, proposed };
}

export function invalid(field: string, message: string): Answer {
  return { kind: 'invalid', field, message };
}
