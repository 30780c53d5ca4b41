/**
 * Finds the rules in force, as far as the partitions of this node know. Each partition decides by its own
 * replicated table.
 */
import type { RuleTable } from '../limiter/rules.ts';

interface HoldsRules {
  readonly ruleTable: RuleTable | undefined;
}

/** The newest table of these partitions. While a change of the rules spreads, some have an older one. */
export function rulesInForce(partitions: Iterable<HoldsRules>): RuleTable | undefined {
  let newest: RuleTable | undefined;
  for (const { ruleTable } of partitions)
    if (ruleTable !== undefined && ruleTable.version > (newest?.version ?? 0)) newest = ruleTable;
  return newest;
}
