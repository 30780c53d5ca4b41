/** The answers a request for a grant can get, from the partition up to the front doors. */
import type { NodeId } from '../../raft/types.ts';
import type { Decision } from '../limiter/decision.ts';

/**
 * Why no decision could be made.
 * - `no_leader`: no leader was known before the deadline
 * - `deadline`: a leader had the request but did not answer in time
 * - `overloaded`: a bounded queue is full
 * - `low_disk`: the leader is close to a full disk
 * - `starting`: the leader has no rules yet
 * - `unknown_outcome`: the request was proposed, and whether it was granted cannot be known here
 * - `not_member`: the node that was asked belongs to the cluster no more, or bears an id that is another's
 */
export type UnavailableReason =
  | 'no_leader'
  | 'deadline'
  | 'overloaded'
  | 'low_disk'
  | 'starting'
  | 'unknown_outcome'
  | 'not_member';

export const UNAVAILABLE_REASONS: readonly UnavailableReason[] = [
  'no_leader',
  'deadline',
  'overloaded',
  'low_disk',
  'starting',
  'unknown_outcome',
  'not_member',
];

export type Answer =
  | { readonly kind: 'decision'; readonly decision: Decision }
  /** The request can never be decided as it is. */
  | { readonly kind: 'invalid'; readonly field: string; readonly message: string }
  /** Denied because nobody could decide (P3). `proposed` false: certainly nothing reached the log. */
  | { readonly kind: 'unavailable'; readonly reason: UnavailableReason; readonly proposed: boolean }
  /** Only between nodes: ask `leader` instead (0: nobody knows). Nothing reached the log. */
  | { readonly kind: 'notLeader'; readonly leader: NodeId };
