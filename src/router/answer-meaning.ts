/** What an answer tells beyond the request it answers: whether it charged anything, and who leads. Pure. */
import type { Unavailable } from '../api/answer.ts';
import type { Answer, UserAnswer, UserRequest } from '../api/user-request.ts';

/** Does the answer say what was asked? Another node is not believed to have understood it. */
export function isAnswerTo({ ask }: UserRequest, { kind }: UserAnswer): boolean {
  switch (kind) {
    case 'standing':
      return ask === 'look';
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

/** Whoever got this did not charge the request, or take anything back for it. */
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
    case 'standing':
    case 'notLeader':
    case 'unavailable':
      return false;
  }
}

/**
 * What a refusal says of the node it comes from.
 * - `elsewhere`: another one may do better
 * - `leads`: nobody but the leader refuses a request for this, for whoever does not lead says so first
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
    // Whoever gets a request too late says so without a look at who leads.
    case 'deadline':
    case 'not_member':
    // Only a door says so, of its own node.
    case 'draining':
      return 'nothing';
  }
}
