/**
 * The rules in force as the text of a document, as its author wrote it where that is kept, and what another text would change: by the
 * same reading and comparing as `quorate rules diff`. Pure.
 */
import { utf8Length } from '../api/bounded.ts';
import { RULES_DOCUMENT_BYTES_MAX, type RulesInForce } from '../api/rules-change.ts';
import { diffRules, type RuleChange } from '../rules/diff.ts';
import { documentText } from '../rules/document-text.ts';
import type { Mistake } from '../rules/mistakes.ts';
import { readRules } from '../rules/read-rules.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';

/** Where no document is in force. */
const EXAMPLE = `rules:
  - id: per-user
    key: [ user ]
    windows: [ { limit: 100, per: minute } ]
`;

/** As `GET /v1/rules` tells them. */
export interface KnownRules extends RulesInForce {
  /** Absent: they did not come as a document. */
  readonly definitions?: readonly RuleDefinition[];
}

/** Of rules as a text to edit. */
export interface TextInForce {
  readonly text: string;
  /**
   * - `author`: as it was applied, with its comments
   * - `written`: made of what the rules say, as no text is kept that says it
   * - `example`: no document is in force
   * - `none`: there are no words for these rules, and the text is empty
   */
  readonly origin: 'author' | 'written' | 'example' | 'none';
}

export function textInForce({
  document,
  definitions,
}: Pick<KnownRules, 'document' | 'definitions'>): TextInForce {
  // As a text field has it.
  if (document !== undefined) return { text: document.replaceAll('\r\n', '\n'), origin: 'author' };
  const text = textOfRules(definitions);
  if (text === undefined) return { text: '', origin: 'none' };
  return { text, origin: definitions === undefined ? 'example' : 'written' };
}

/**
 * The rules without anybody's comments. Undefined if some are of nested descriptors, which this form has no words for.
 *
 * @param definitions undefined: they did not come as a document
 */
export function textOfRules(definitions: readonly RuleDefinition[] | undefined): string | undefined {
  return definitions === undefined ? EXAMPLE : documentText(definitions);
}

/** What becomes of the rules in force if a text is applied. */
export type Checked =
  | { readonly kind: 'mistakes'; readonly mistakes: readonly Mistake[]; readonly isComplete: boolean }
  | {
      readonly kind: 'changes';
      /** What the text says. */
      readonly definitions: readonly RuleDefinition[];
      readonly changes: readonly RuleChange[];
      readonly notes: readonly Mistake[];
    };

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

/** Where a place of a mistake is in the text: an index of UTF-16 units. */
export function indexOfPlace(text: string, { line, column }: Pick<Mistake, 'line' | 'column'>): number {
  const lines = text.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return Math.min(text.length, before + column - 1);
}
