/** Writes rules as a document in the native format, which `readRules` reads as the same rules. Pure functions. */
import { Document, isMap, isSeq, visit } from 'yaml';
import { nativeForm } from './native-form.ts';
import { type LimitWindow, type RuleDefinition, UNIT_MILLIS } from './rule-definition.ts';
import { isForUnmatched, unmatchedIn } from './unmatched.ts';

/** Column at which the YAML writer wraps. */
const WIDTH = 100;

function windowForm({ limit, windowMillis }: LimitWindow): object {
  const [unit] = Object.entries(UNIT_MILLIS).find(([, millis]) => millis === windowMillis) ?? [];
  return unit === undefined ? { limit, windowMillis } : { limit, per: unit };
}

/**
 * The text of the document, in YAML. Undefined if a rule is for nested descriptors, which the native format cannot
 * express.
 */
export function documentText(definitions: readonly RuleDefinition[]): string | undefined {
  const unmatched = unmatchedIn(definitions);
  const rules = definitions
    .filter((rule) => !isForUnmatched(rule))
    .map((definition) => {
      const form = nativeForm(definition);
      const { windows } = definition;
      return form && windows.length > 0 ? { ...form, windows: windows.map(windowForm) } : form;
    });
  if (rules.includes(undefined)) return undefined;
  const document = new Document({ ...(unmatched !== undefined && { unmatched }), rules });
  visit(document, {
    Pair(_, { key, value }) {
      if (String(key) !== 'rules' && (isMap(value) || isSeq(value))) value.flow = true;
    },
  });
  return document.toString({ lineWidth: WIDTH });
}
