/** What a node answers itself to requests whose limits rules find, before or instead of asking any partition. */
import type { Unavailable } from '../api/answer.ts';

/** This node knows of no rules yet. */
export const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
export const OVERLOADED: Unavailable = { kind: 'unavailable', reason: 'overloaded', proposed: false };
export const TOO_LATE: Unavailable = { kind: 'unavailable', reason: 'deadline', proposed: false };
export const RULES_CHANGED: Unavailable = { kind: 'unavailable', reason: 'rules_changed', proposed: false };
const CUSTOMER_CHANGED: Unavailable = { kind: 'unavailable', reason: 'customer_changed', proposed: false };

/** By its deadline this node and a partition did not agree by what it is decided. */
export function outdated({ recordsLearned }: { readonly recordsLearned: number }): Unavailable {
  return recordsLearned > 0 ? CUSTOMER_CHANGED : RULES_CHANGED;
}
