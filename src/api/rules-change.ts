/**
 * The rules in force in a running cluster, and the change of them. Group 0 sends a change to all partitions, and each
 * partition decides by the new rules from its own log entry on.
 */
import type { Rule } from './rule.ts';

/** A rule table with its version. A change replaces the whole table. */
export interface RulesInForce {
  /** Counts the changes. A table is only replaced by one with a higher version. */
  readonly version: number;
  /** The first rule is the default. */
  readonly rules: readonly Rule[];
  readonly requestIdHorizonMillis: number;
  readonly clockDriftPpm: number;
  readonly partitionBytesMax: number;
  /** Only if the rules came as a document: the requests that each rule matches (see src/rules/). */
  readonly definitions?: readonly unknown[];
  /** The text of that document as its author wrote it. Absent: the rules in force did not come from a text. */
  readonly document?: string;
}

/** A replaced rule document that group 0 still remembers, because a retry may belong to a request that it granted. */
export interface MatchedBefore {
  /** JSON text (see `matchingForm`). Equal texts match all requests alike. */
  readonly definitions: string;
  /** How long request ids were remembered after a grant, in milliseconds. */
  readonly horizonMillis: number;
}

/** The JSON fields of a table in a change. The cluster assigns the version. */
export const RULES_CHANGE_FIELDS = [
  'rules',
  'requestIdHorizonMillis',
  'clockDriftPpm',
  'partitionBytesMax',
] as const satisfies readonly (keyof RulesInForce)[];

/** The longest `RulesChange.document` in UTF-8 bytes. */
export const RULES_DOCUMENT_BYTES_MAX = 262_144;

/** A change of the rules: a table, a document, or one rule. */
export interface RulesChange {
  /** The table, not checked yet. Absent fields stay as they are; `rules` replaces all rules. */
  readonly table: { readonly [Field in (typeof RULES_CHANGE_FIELDS)[number]]?: unknown };
  /** Instead of the rules of `table`: the text of a rule document (src/rules/), not parsed yet. */
  readonly document?: string;
  /** Instead of both: replaces one rule, appends it if it is new, or removes it. */
  readonly rule?: OneRuleChange;
  /** Change the rules only if this version is in force. */
  readonly ifVersion: number | undefined;
}

/** The change of one rule. */
export interface OneRuleChange {
  /** Any text. */
  readonly id: string;
  /**
   * The rule without its id, not checked yet: in the form of a document, or of a table if no document is in force.
   * Absent: the rule is removed.
   */
  readonly body?: Readonly<Record<string, unknown>>;
}
