/** Writes rules in the native format: one rule, a document, and one rule changed in the text of a document. */
import {
  keyKind,
  type LimitWindow,
  partName,
  type RuleCost,
  type RuleDefinition,
  UNIT_MILLIS,
} from './rule-definition.ts';
import { isForUnmatched, unmatchedIn } from './unmatched.ts';
import { Document, isMap, isNode, isSeq, parseDocument, visit } from 'yaml';

/**
 * The fields of a rule, as in rules.yaml, so that a caller of the API can change a field and send it back. Defaults
 * are left out. Undefined for what this form cannot express: a rule for descriptors in an order, and the setting for
 * requests that no rule matches.
 */
export function nativeForm(definition: RuleDefinition): Readonly<Record<string, unknown>> | undefined {
  const { id, scope, group, priority, windows, meter, burst, cost, clock, failMode } = definition;
  if (scope.kind === 'path' || isForUnmatched(definition)) return undefined;
  const { enabled, shadow, named, unlimited, replaces, comment } = definition;
  return {
    id,
    ...(scope.conditions.length > 0 && {
      match: Object.fromEntries(scope.conditions.map(({ name, value }) => [name, value])),
    }),
    ...(scope.key.length > 0 && { key: scope.key.map(partName) }),
    ...(unlimited ? { unlimited } : { windows }),
    ...(meter !== 'slidingLog' && { meter }),
    ...(burst !== undefined && { burst }),
    ...costForm(cost),
    ...(clock !== 'request' && { clock }),
    ...(failMode !== 'closed' && { failMode }),
    ...(!enabled && { enabled }),
    ...(priority !== 0 && { priority }),
    ...(group !== keyKind(scope.key) && { group }),
    ...(shadow && { shadow }),
    ...(named === true && { named }),
    ...(replaces.length > 0 && { replaces }),
    ...(comment !== undefined && { comment }),
  };
}

function costForm({ otherwise, endpoints }: RuleCost): { readonly cost?: unknown } {
  if (endpoints.length === 0) return otherwise === 1 ? {} : { cost: otherwise };
  const byEndpoint = endpoints.map(({ endpoint, cost }) => [endpoint, cost] as const);
  return { cost: Object.fromEntries([...byEndpoint, ['*', otherwise]]) };
}

/** Column at which the YAML writer wraps. */
const WIDTH = 100;

function windowForm({ limit, windowMillis }: LimitWindow): object {
  const [unit] = Object.entries(UNIT_MILLIS).find(([, millis]) => millis === windowMillis) ?? [];
  return unit === undefined ? { limit, windowMillis } : { limit, per: unit };
}

/**
 * The text of a document with these rules, in YAML; `readRules` reads it as the same rules. Undefined if a rule is
 * for nested descriptors, which the native format cannot express.
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

/**
 * Adds, replaces or removes a rule in the text of a document. The author's comments and layout around it are kept.
 * Undefined if the text has no list `rules`, or none with this id to remove. The caller must check the resulting
 * document.
 *
 * @param body the rule without its id; undefined: the rule is removed
 */
export function textWithRule(
  text: string,
  { id, body }: { readonly id: string; readonly body?: Readonly<Record<string, unknown>> },
): string | undefined {
  const document = parseDocument(text);
  const rules = document.errors.length === 0 ? document.get('rules') : undefined;
  if (!isSeq(rules)) return undefined;
  const at = rules.items.findIndex((item) => isMap(item) && item.get('id') === id);
  const old = rules.items[at];
  if (body === undefined) {
    if (at === -1) return undefined;
    rules.items.splice(at, 1);
  } else {
    const node = document.createNode({ id, ...body }, { flow: isMap(old) && old.flow === true });
    if (old === undefined) rules.items.push(node);
    else {
      if (isNode(old) && isNode(node)) {
        node.commentBefore = old.commentBefore ?? null;
        node.spaceBefore = old.spaceBefore ?? false;
      }
      rules.items[at] = node;
    }
  }
  try {
    return document.toString({ lineWidth: 0 });
  } catch {
    // Another rule has an alias of an anchor that was in the rule of before.
    return undefined;
  }
}
