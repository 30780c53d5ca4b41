/**
 * The rules of a running cluster as every door tells them, and a change of them. Group 0 carries it to all partitions; each decides by it
 * from its own log entry on.
 */
import type { Rule } from './rule.ts';

/** What a rule table says, and its version. A change replaces all of it. */
export interface RulesInForce {
  /** Counts the changes: only a greater one replaces a table. */
  readonly version: number;
  /** The first is the default. */
  readonly rules: readonly Rule[];
  readonly requestIdHorizonMillis: number;
  readonly clockDriftPpm: number;
  readonly partitionBytesMax: number;
  /** Which requests they are for, if they came as a document: see src/rules/. */
  readonly definitions?: readonly unknown[];
  /** The text of that document as its author wrote it. Absent: no text says what is in force. */
  readonly document?: string;
}

/** What group 0 remembers of rules that it has replaced: a retry may be of a request that was granted by them. */
export interface MatchedBefore {
  /** In JSON, see `matchingForm`; equal texts match all requests alike. */
  readonly definitions: string;
  /** So long after a grant its id was remembered. */
  readonly horizonMillis: number;
}

/** In JSON; the version is the cluster's to give. */
export const RULES_CHANGE_FIELDS = [
  'rules',
  'requestIdHorizonMillis',
  'clockDriftPpm',
  'partitionBytesMax',
] as const satisfies readonly (keyof RulesInForce)[];

/** The longest `RulesChange.document`, in UTF-8 bytes. */
export const RULES_DOCUMENT_BYTES_MAX = 262_144;

export interface RulesChange {
  /** Not checked yet. What is absent stays as it is; the rules are replaced as a whole. */
  readonly table: { readonly [Field in (typeof RULES_CHANGE_FIELDS)[number]]?: unknown };
  /** Instead of the rules of `table`: a document (src/rules/) that says which requests they are for. Not read yet. */
  readonly document?: string;
  /** Instead of both: one rule put in its place, behind the others if it is new; or taken out. */
  readonly rule?: OneRuleChange;
  /** Only if this is the version in force. */
  readonly ifVersion: number | undefined;
}

export interface OneRuleChange {
  /** Any text. */
  readonly id: string;
  /** As a document has it, or a table where no document is in force; without its id. Not read yet. Absent: it is taken out. */
  readonly body?: Readonly<Record<string, unknown>>;
}
