/**
 * Turns the rules in force into a text to edit, and says what an edited text would change. It uses the same parser and
 * comparison as `quorate rules diff`. Pure.
 */
import { utf8Length } from '../api/bounded.ts';
import { RULES_DOCUMENT_BYTES_MAX, type RulesInForce } from '../api/rules-change.ts';
import { diffRules, type RuleChange } from '../rules/diff.ts';
import { documentText } from '../rules/native-form.ts';
import type { Mistake } from '../rules/mistakes.ts';
import { readRules } from '../rules/read-rules.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';

/** Offered for editing if no document is in force. */
const EXAMPLE = `rules:
  - id: per-user
    key: [ user ]
    windows: [ { limit: 100, per: minute } ]
`;

/** Body of `GET /v1/rules`. */
export interface KnownRules extends RulesInForce {
  /** Absent if the rules were not applied as a document. */
  readonly definitions?: readonly RuleDefinition[];
}

/** A text to edit, and where it comes from. */
export interface TextInForce {
  readonly text: string;
  /**
   * - `author`: the applied document, with its comments
   * - `written`: generated from the rules, because the applied document was not kept
   * - `example`: no document is in force
   * - `none`: a document cannot express these rules, so the text is empty
   */
  readonly origin: 'author' | 'written' | 'example' | 'none';
}

/** The text to edit for the rules in force. */
export function textInForce({
  document,
  definitions,
}: Pick<KnownRules, 'document' | 'definitions'>): TextInForce {
  // A text area uses plain line feeds, so the texts would differ at every line.
  if (document !== undefined) return { text: document.replaceAll('\r\n', '\n'), origin: 'author' };
  const text = textOfRules(definitions);
  if (text === undefined) return { text: '', origin: 'none' };
  return { text, origin: definitions === undefined ? 'example' : 'written' };
}

/**
 * Generates a document from the rules, without comments. Undefined if a rule uses nested descriptors: a document has no
 * form for them.
 *
 * @param definitions undefined if the rules were not applied as a document
 */
export function textOfRules(definitions: readonly RuleDefinition[] | undefined): string | undefined {
  return definitions === undefined ? EXAMPLE : documentText(definitions);
}

/** Result of checking a text: its mistakes, or the changes it would make. */
export type Checked =
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[]; readonly isComplete: boolean }
  | {
      readonly kind: 'changes';
      /** The rules in the text. */
      readonly definitions: readonly RuleDefinition[];
      readonly changes: readonly RuleChange[];
      readonly notes: readonly Mistake[];
    };

/** Parses a text and compares it with the rules in force. */
export function checkRules(text: string, inForce: readonly RuleDefinition[] | undefined): Checked {
  const bytes = utf8Length(text);
  if (bytes > RULES_DOCUMENT_BYTES_MAX) {
    const message = `a cluster takes documents of at most ${RULES_DOCUMENT_BYTES_MAX} bytes, and this one has ${bytes}`;
    return { kind: 'mistakes', mistakes: [{ line: 1, column: 1, message }], isComplete: true };
  }
  const read = readRules(text);
  if (read.kind === 'mistakes') return read;
  const { definitions, notes } = read;
  return { kind: 'changes', definitions, changes: diffRules(inForce ?? [], definitions), notes };
}

/** Converts the line and column of a mistake to an index in the text, in UTF-16 units. */
export function indexOfPlace(text: string, { line, column }: Pick<Mistake, 'line' | 'column'>): number {
  const lines = text.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return Math.min(text.length, before + column - 1);
}
