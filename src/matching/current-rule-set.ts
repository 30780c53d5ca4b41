/**
 * Makes the rule set of the newest rules that this node knows, when it is first needed, and keeps it until the
 * version changes.
 */
import type { Rule } from '../api/rule.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { definitionsOfTable } from '../rules/table-form.ts';
import { RuleSet } from './rule-set.ts';

/** The rules in the state of group 0. */
interface Known {
  readonly rules: { readonly version: number; readonly rules: readonly Rule[] };
  /** The rule definitions as JSON. Absent if the rules were given as a plain table. */
  readonly definitions?: string;
}

/** The cached rule set of the newest rules. */
export class CurrentRuleSet {
  #ruleSet: RuleSet | undefined;

  /** The rule set of these rules. The same object is returned as long as the version is the same. */
  of({ rules, definitions }: Known): RuleSet {
    // A version always stands for the same rules, so comparing versions is enough.
    if (this.#ruleSet?.version !== rules.version) {
      const meant =
        definitions === undefined
          ? definitionsOfTable(rules.rules)
          : (JSON.parse(definitions) as readonly RuleDefinition[]);
      this.#ruleSet = new RuleSet(rules.version, meant);
    }
    return this.#ruleSet;
  }
}
