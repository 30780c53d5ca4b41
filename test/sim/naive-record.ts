/** What one record says, and what that makes of a rule: written from docs/internals/limiter.md. */
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import type { Rule } from '../../src/api/rule.ts';

const BUCKET_MAX = 1_000_000;

/** Equal for two records that say the same. */
export function wordsOfRecord(record: CustomerRecord | undefined): string {
  const { version, tier = null, overrides, isBlocked, blockedUntilMillis = null } = record ?? NO_RECORD;
  const limits = overrides.map(({ ruleId, limit, burst = null }) => [ruleId, limit, burst]);
  return JSON.stringify([version, tier, limits, isBlocked, blockedUntilMillis]);
}

/** What is told of it at this group time: nothing of a block whose end has come. */
export function toldAt(record: CustomerRecord, nowMillis: number): CustomerRecord {
  const { version, tier, overrides, blockedUntilMillis: end } = record;
  const isOver = end !== undefined && nowMillis >= end;
  return isOver ? { version, ...(tier !== undefined && { tier }), overrides, isBlocked: false } : record;
}

/** How long whoever is blocked is told to wait; 0 where that has no end. Undefined: the key is not blocked. */
export function blockWaitAt(record: CustomerRecord, nowMillis: number): number | undefined {
  const { isBlocked, blockedUntilMillis: end } = toldAt(record, nowMillis);
  if (!isBlocked) return undefined;
  return end === undefined ? 0 : end - nowMillis;
}

/** As it is for the key of that record: of a bucket the override says all, of others the limit alone. */
export function ruleOfKey(rule: Rule, { overrides }: CustomerRecord): Rule {
  const own = overrides.find(({ ruleId }) => ruleId === rule.id);
  if (own === undefined) return rule;
  const { limit, burst } = own;
  if (rule.meter !== 'tokenBucket' && rule.meter !== 'leakyBucket') return { ...rule, limit };
  const queue = rule.queue && Math.min(rule.queue, BUCKET_MAX - (burst ?? limit));
  const { burst: _, queue: __, ...others } = rule;
  return { ...others, limit, ...(burst !== undefined && { burst }), ...(queue !== undefined && { queue }) };
}
