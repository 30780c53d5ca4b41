/**
 * Interprets answers beyond the single request: whether something was charged, and whether the answering node leads
 * the partition. Pure functions.
 */
import type { Unavailable } from '../api/answer.ts';
import type { Answer, UserAnswer, UserRequest } from '../api/user-request.ts';

/** Whether an answer fits the request. Another node may have misunderstood it. */
export function isAnswerTo({ ask }: UserRequest, { kind }: UserAnswer): boolean {
  switch (kind) {
    case 'keyStatus':
      return ask === 'peek';
    case 'refund':
      return ask === 'refund';
    case 'customer':
      return ask === 'customer';
    case 'decision':
    case 'conflict':
      return ask === undefined;
    case 'invalid':
    case 'unavailable':
      return true;
  }
}

/** The answering node did not charge the request, or did not refund or change anything for it. */
export function isRejection(answer: Answer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed;
    case 'refund':
      return !answer.refund.refunded;
    case 'customer':
      return !answer.outcome.isDone;
    case 'invalid':
    case 'conflict':
      return true;
    case 'keyStatus':
    case 'notLeader':
    case 'unavailable':
      return false;
  }
}

/**
 * What a refusal says about the node that sent it:
 *
 * - `elsewhere`: another node may be able to answer
 * - `leads`: the node leads the partition, as only a leader refuses for this reason
 * - `nothing`: neither
 */
export function meaningOf({ reason }: Unavailable): 'elsewhere' | 'leads' | 'nothing' {
  switch (reason) {
    case 'no_leader':
    case 'starting':
    case 'unknown_outcome':
      return 'elsewhere';
    case 'overloaded':
    case 'low_disk':
    case 'at_capacity':
    case 'rules_changed':
    case 'customer_changed':
      return 'leads';
    // A node that gets a request too late refuses it before it checks whether it leads.
    case 'deadline':
    case 'not_member':
    // Only a listener answers this, about its own node.
    case 'draining':
      return 'nothing';
  }
}
