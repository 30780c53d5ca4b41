/**
 * Which rules are in force, as far as the partitions of this node know, and whether those of its file are overruled by
 * them. It only tells: the partitions decide by their own replicated table.
 */
import { isDeepStrictEqual } from 'node:util';
import type { RuleTable } from '../limiter/rules.ts';

interface HoldsRules {
  readonly ruleTable: RuleTable | undefined;
}

/** The newest table of these partitions. While a change of the rules travels, some have an older one. */
export function rulesInForce(partitions: Iterable<HoldsRules>): RuleTable | undefined {
  let newest: RuleTable | undefined;
  for (const { ruleTable } of partitions)
    if (ruleTable !== undefined && ruleTable.version > (newest?.version ?? 0)) newest = ruleTable;
  return newest;
}

type Rules = Pick<RuleTable, 'version' | 'rules'>;

/** Other rules are in force than a file says, and will be: only a greater version replaces a table. */
export function isOverruled(file: Rules, inForce: Rules): boolean {
  return inForce.version >= file.version && !isDeepStrictEqual(inForce, file);
}

export class RulesWatch {
  readonly #file: RuleTable;
  readonly #overruled: (inForce: RuleTable) => void;
  readonly #seen = new WeakSet<RuleTable>();
  #toldVersion = 0;

  /** @param overruled told once of each version that is in force in place of the rules in `file` */
  constructor(file: RuleTable, overruled: (inForce: RuleTable) => void) {
    this.#file = file;
    this.#overruled = overruled;
  }

  look(partitions: Iterable<HoldsRules>): void {
    for (const { ruleTable } of partitions) {
      if (ruleTable === undefined || this.#seen.has(ruleTable)) continue;
      this.#seen.add(ruleTable);
      if (ruleTable.version <= this.#toldVersion || !isOverruled(this.#file, ruleTable)) continue;
      this.#toldVersion = ruleTable.version;
      this.#overruled(ruleTable);
    }
  }
}
