/** The meaning of one record of a key, and its effect on a rule. Written from docs/internals/limiter.md. */
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import type { Rule } from '../../src/api/rule.ts';

const BUCKET_MAX = 1_000_000;

/** Equal for two records with the same meaning. */
export function wordsOfRecord(record: CustomerRecord | undefined): string {
  const { version, tier = null, overrides, isBlocked, blockedUntilMillis = null } = record ?? NO_RECORD;
  const limits = overrides.map(({ ruleId, limit, burst = null }) => [ruleId, limit, burst]);
  return JSON.stringify([version, tier, limits, isBlocked, blockedUntilMillis]);
}

/** The record as reported at this group time, without a block that has ended. */
export function reportedAt(record: CustomerRecord, nowMillis: number): CustomerRecord {
  const { version, tier, overrides, blockedUntilMillis: end } = record;
  const isOver = end !== undefined && nowMillis >= end;
  return isOver ? { version, ...(tier !== undefined && { tier }), overrides, isBlocked: false } : record;
}

/** The wait reported for a blocked key; 0 if the block has no end. Undefined: the key is not blocked. */
export function blockWaitAt(record: CustomerRecord, nowMillis: number): number | undefined {
  const { isBlocked, blockedUntilMillis: end } = reportedAt(record, nowMillis);
  if (!isBlocked) return undefined;
  return end === undefined ? 0 : end - nowMillis;
}

/**
 * The rule as it applies to the key of that record. For a bucket the override replaces everything, for other meters the
 * limit alone.
 */
export function ruleOfKey(rule: Rule, { overrides }: CustomerRecord): Rule {
  const own = overrides.find(({ ruleId }) => ruleId === rule.id);
  if (own === undefined) return rule;
  const { limit, burst } = own;
  if (rule.meter !== 'tokenBucket' && rule.meter !== 'leakyBucket') return { ...rule, limit };
  const queue = rule.queue && Math.min(rule.queue, BUCKET_MAX - (burst ?? limit));
  const { burst: _, queue: __, ...others } = rule;
  return { ...others, limit, ...(burst !== undefined && { burst }), ...(queue !== undefined && { queue }) };
}
