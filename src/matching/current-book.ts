/** The rule book of the newest definitions that this node knows of, made when it is asked for. */
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { RuleBook } from './rule-book.ts';

/** What group 0 says of the rules. */
interface Known {
  readonly rules?: { readonly version: number };
  /** In JSON. */
  readonly definitions?: string;
}

export class CurrentBook {
  #book: RuleBook | undefined;

  /** Undefined if there are no rules to match by. */
  of({ rules, definitions }: Known): RuleBook | undefined {
    if (rules === undefined || definitions === undefined) return undefined;
    // A version is of one table, and of what that was made of.
    if (this.#book?.version !== rules.version)
      this.#book = new RuleBook(rules.version, JSON.parse(definitions) as readonly RuleDefinition[]);
    return this.#book;
  }
}
