/** Refusals that a node answers itself, before or instead of asking any partition. */
import type { Unavailable } from '../api/answer.ts';

/** This node knows no rules yet. */
export const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
/** Too many requests wait on this node. */
export const OVERLOADED: Unavailable = { kind: 'unavailable', reason: 'overloaded', proposed: false };
/** The deadline has passed before any partition charged anything. */
export const TOO_LATE: Unavailable = { kind: 'unavailable', reason: 'deadline', proposed: false };
/** This node and a partition have different rules. The caller may try again. */
export const RULES_CHANGED: Unavailable = { kind: 'unavailable', reason: 'rules_changed', proposed: false };
const CUSTOMER_CHANGED: Unavailable = { kind: 'unavailable', reason: 'customer_changed', proposed: false };

/**
 * The answer to a request whose deadline passed while this node and a partition had different rules or customer
 * records.
 */
export function outdated({ recordsLearned }: { readonly recordsLearned: number }): Unavailable {
  return recordsLearned > 0 ? CUSTOMER_CHANGED : RULES_CHANGED;
}
