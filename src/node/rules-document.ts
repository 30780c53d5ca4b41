/** A document of rules, as it is handed to group 0: read, and made rules of the limiter. */
import { RULES_DOCUMENT_BYTES_MAX, type RulesChangeResult } from '../api/rules-change.ts';
import type { Rule } from '../api/rule.ts';
import { limiterRulesOf } from '../rules/compile.ts';
import { readRules } from '../rules/read-rules.ts';

/** More would not help whoever has to mend them. */
const MISTAKES_SHOWN_MAX = 10;

interface ReadDocument {
  /** One for each window. */
  readonly rules?: readonly Rule[];
  /** In JSON. */
  readonly definitions?: string;
}

type Invalid = Extract<RulesChangeResult, { reason: 'invalid' }>;

export function readDocument(document: string): ReadDocument | Invalid {
  const bytes = Buffer.byteLength(document);
  if (bytes > RULES_DOCUMENT_BYTES_MAX)
    return invalid(`document must be at most ${RULES_DOCUMENT_BYTES_MAX} bytes, but is ${bytes}`);
  const read = readRules(document);
  if (read.kind === 'mistakes') {
    const { mistakes } = read;
    const shown = mistakes
      .slice(0, MISTAKES_SHOWN_MAX)
      .map(({ line, column, message }) => `${line}:${column}: ${message}`);
    const more = mistakes.length - shown.length;
    return invalid([...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'));
  }
  const definitions = JSON.stringify(read.definitions);
  if (Buffer.byteLength(definitions) > 2 * RULES_DOCUMENT_BYTES_MAX)
    return invalid('document repeats too much of itself');
  return { rules: limiterRulesOf(read.definitions), definitions };
}

function invalid(message: string): Invalid {
  return { ok: false, reason: 'invalid', field: 'document', message };
}
