/**
 * Changes one rule in the text of a document and keeps the author's comments and layout around it. Pure functions.
 */
import { isMap, isNode, isSeq, parseDocument } from 'yaml';

/**
 * Adds, replaces or removes a rule. Undefined if the text has no list `rules`, or none with this id to remove. The
 * caller must check the resulting document.
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
