/** The rule book of the newest definitions that this node knows of, made when it is asked for. */
import type { Invalid, Unavailable } from '../api/answer.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { RuleBook } from './rule-book.ts';

/** This node knows of no rules yet. */
export const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
/** There are none to match by. */
export const NO_DOCUMENT: Invalid = {
  kind: 'invalid',
  field: 'descriptors',
  message: 'descriptors find no rules: none of this cluster say which requests they are for; name a rule',
};

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
