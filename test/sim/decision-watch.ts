/**
 * Compares the decisions of the state machines of a run, entry by entry. Hashing a whole state costs more than most
 * steps, so between full hashes replicas must have equal decisions and equal state sizes.
 *
 * Followers request no decisions, so this makes all machines of this process report theirs.
 */
import type { Decision } from '../../src/limiter/decision.ts';
import { wordsOfRecord } from './naive-record.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';

/** As many as a message may show. */
const REPORTED_MAX = 20;

let digest = 0;
let reported: Decision[] = [];
/** The decisions of the last digest. */
let taken: readonly Decision[] = [];

function mix(value: number): void {
  digest = Math.imul(digest ^ value, 0x01000193);
  digest ^= digest >>> 15;
}

/** Decision `i` of an entry, made by a machine or expected from one. */
export function reportDecision(i: number, decision: Decision): void {
  const {
    allowed,
    limit,
    remaining,
    retryAfterMillis,
    resetMillis,
    decided,
    refusal = '',
    refund,
    customer,
  } = decision;
  if (reported.length < REPORTED_MAX) reported.push(decision);
  mix(i * 2 + (allowed ? 1 : 0));
  mix(refusal.length);
  if (refund !== undefined) mix(refund.refunded ? 1 + refund.cost : -1);
  mix(decision.isBlocked === true ? 1 : 0);
  if (customer !== undefined) {
    mix(customer.isDone ? 1 : 2);
    for (const unit of Buffer.from(wordsOfRecord(customer.record))) mix(unit);
  }
  mix(decision.ruleId.length);
  mix(decision.windowMillis);
  mix(decision.conflict?.field.length ?? 0);
  mix(decided.term);
  mix(limit);
  mix(remaining);
  mix(retryAfterMillis);
  mix(resetMillis);
  mix(decision.waitMillis ?? 0);
  mix(decision.rulesVersion);
  mix(decided.index);
  mix(decided.position ?? -1);
  mix(decided.timeMillis % 0x1_0000_0000);
  for (const limitStatus of decision.limits ?? []) {
    mix(limitStatus.ruleId.length);
    mix(limitStatus.limit);
    mix(limitStatus.windowMillis);
    mix(limitStatus.remaining);
    mix(limitStatus.retryAfterMillis);
    mix(limitStatus.resetMillis);
  }
}

const machine = LimiterStateMachine.prototype;
type Apply = (...args: Parameters<LimiterStateMachine['apply']>) => void;
const apply: Apply = Reflect.get(machine, 'apply');
machine.apply = function (command, position, onDecision) {
  apply.call(this, command, position, (i, decision) => {
    reportDecision(i, decision);
    onDecision?.(i, decision);
  });
};

/** A digest of all decisions since the last call. */
export function takeDecisions(): number {
  const before = digest >>> 0;
  digest = 0;
  taken = reported;
  reported = [];
  return before;
}

/** The decisions of the last digest, for a message. */
export function lastDecisions(): string {
  return JSON.stringify(taken);
}
