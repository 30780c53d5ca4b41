/** Reads a document of rules, or one rule of it, and prepares it for group 0. */
import type { ChangeRefused } from '../api/cluster-change.ts';
import { type OneRuleChange, RULES_DOCUMENT_BYTES_MAX } from '../api/rules-change.ts';
import type { Rule } from '../api/rule.ts';
import { limiterRulesOf } from '../rules/limiter-rules.ts';
import { readRules, type RulesRead } from '../rules/read-rules.ts';
import { textWithRule } from '../rules/native-form.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';

/** More mistakes would not help the author. */
const MISTAKES_SHOWN_MAX = 10;

interface ReadDocument {
  /** Rules of the limiter, one for each window. From a rule table they are not checked yet. */
  readonly rules?: readonly unknown[];
  /** The definitions as JSON. */
  readonly definitions?: string;
  /** The text they were read from, with its comments. */
  readonly document?: string;
}

/** Reads a whole document. */
export function readDocument(document: string): ReadDocument | ChangeRefused {
  const bytes = Buffer.byteLength(document);
  if (bytes > RULES_DOCUMENT_BYTES_MAX)
    return invalid(`document must be at most ${RULES_DOCUMENT_BYTES_MAX} bytes, but is ${bytes}`, 'document');
  const read = readRules(document);
  if (read.kind === 'mistakes')
    return invalid(
      saying(read, ({ line, column, message }) => `${line}:${column}: ${message}`),
      'document',
    );
  const change = written(read.definitions, 'document is too large once its aliases are expanded', 'document');
  return 'ok' in change ? change : { ...change, document };
}

/**
 * Reads a change of one rule of a document.
 *
 * @param inForce the rules of the document, in order
 * @param document its text, which is changed too; it is dropped if the changed text would not give the same rules
 */
export function readRuleOfDocument(
  change: OneRuleChange,
  inForce: readonly RuleDefinition[],
  document?: string,
): ReadDocument | ChangeRefused {
  const read = readOneRule(change, inForce);
  if ('ok' in read || document === undefined) return read;
  const text = textWithRule(document, change);
  if (text === undefined || Buffer.byteLength(text) > RULES_DOCUMENT_BYTES_MAX) return read;
  const again = readRules(text);
  const isSame = again.kind === 'rules' && JSON.stringify(again.definitions) === read.definitions;
  return isSame ? { ...read, document: text } : read;
}

function readOneRule(
  { id, body }: OneRuleChange,
  inForce: readonly RuleDefinition[],
): ReadDocument | ChangeRefused {
  const others = inForce.filter((definition) => definition.id !== id);
  if (body === undefined) {
    if (others.length === inForce.length) return { ok: false, reason: 'unknownRule' };
    const name = inForce.find((definition) => definition.id === id)?.name ?? '';
    const successor = others.find(({ replaces }) => replaces.includes(name));
    if (successor !== undefined) return invalid(`rule '${successor.id}' replaces it`, 'id');
    return written(others, 'there are too many rules', 'rules');
  }
  // The text is generated, so places in it mean nothing to the caller; the messages alone must be clear.
  const read = readRules(JSON.stringify({ rules: [{ ...body, id }] }), others);
  if (read.kind === 'mistakes')
    return invalid(
      saying(read, ({ message }) => message),
      'rule',
    );
  const [definition] = read.definitions;
  if (definition === undefined) return invalid('this is not a rule', 'rule');
  const isNew = others.length === inForce.length;
  const definitions = isNew
    ? [...inForce, definition]
    : inForce.map((other) => (other.id === id ? definition : other));
  return written(definitions, 'there are too many rules', 'rules');
}

/** Changes one rule if a table is in force, and not a document. */
export function readRuleOfTable(
  { id, body }: OneRuleChange,
  inForce: readonly Rule[],
): ReadDocument | ChangeRefused {
  const at = inForce.findIndex((rule) => rule.id === id);
  if (body === undefined) {
    if (at === -1) return { ok: false, reason: 'unknownRule' };
    return { rules: inForce.filter((rule) => rule.id !== id) };
  }
  const rule = { ...body, id };
  return { rules: at === -1 ? [...inForce, rule] : inForce.map((other, i) => (i === at ? rule : other)) };
}

function written(
  definitions: readonly RuleDefinition[],
  tooMuch: string,
  field: string,
): ReadDocument | ChangeRefused {
  const text = JSON.stringify(definitions);
  if (Buffer.byteLength(text) > 2 * RULES_DOCUMENT_BYTES_MAX) return invalid(tooMuch, field);
  return { rules: limiterRulesOf(definitions), definitions: text };
}

type Mistakes = Extract<RulesRead, { kind: 'mistakes' }>;

function saying({ mistakes }: Mistakes, line: (mistake: Mistakes['mistakes'][number]) => string): string {
  const shown = mistakes.slice(0, MISTAKES_SHOWN_MAX).map(line);
  const more = mistakes.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
}

function invalid(message: string, field: string): ChangeRefused {
  return { ok: false, reason: 'invalid', field, message };
}
