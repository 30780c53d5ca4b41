/** The rule book of the newest rules that this node knows of, made when it is asked for. */
import type { Rule } from '../api/rule.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { definitionsOfTable } from '../rules/table-form.ts';
import { RuleBook } from './rule-book.ts';

/** What group 0 says of the rules. */
interface Known {
  readonly rules: { readonly version: number; readonly rules: readonly Rule[] };
  /** In JSON; absent: they were given as a table. */
  readonly definitions?: string;
}

export class CurrentBook {
  #book: RuleBook | undefined;

  of({ rules, definitions }: Known): RuleBook {
    // A version is of one table, and of what that was made of.
    if (this.#book?.version !== rules.version) {
      const meant =
        definitions === undefined
          ? definitionsOfTable(rules.rules)
          : (JSON.parse(definitions) as readonly RuleDefinition[]);
      this.#book = new RuleBook(rules.version, meant);
    }
    return this.#book;
  }
}
