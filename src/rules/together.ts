/**
 * Checks the rules of a document against each other: ids are unique, replaced rules exist, and rules do not replace
 * each other in a circle, as then none of them would apply.
 */
import { type Findings, knownInstead, type Offset, quoted } from './mistakes.ts';
import type { RuleDefinition } from './rule-definition.ts';

/** A rule with its place in the document. */
export interface Located {
  readonly definition: RuleDefinition;
  readonly at: Offset;
  /** Place of each entry of `replaces`. */
  readonly replacesAt: readonly Offset[];
}

/** The same rule in shadow. */
export function inShadow(rule: Located): Located {
  return { ...rule, definition: { ...rule.definition, shadow: true } };
}

/**
 * Reports mistakes between rules. @param isWhole this document has all rules, so replacing an unknown one is a
 * mistake; else it is a note
 */
export function checkTogether(rules: readonly Located[], isWhole: boolean, findings: Findings): void {
  const first = new Map<string, Located>();
  const names = new Set<string>();
  for (const rule of rules) {
    const { id, name } = rule.definition;
    const other = first.get(id);
    if (other === undefined) first.set(id, rule);
    else {
      const { line } = findings.place(other.at);
      findings.mistake(rule.at, `another rule has the id ${quoted(id)}; see line ${line}`);
    }
    if (name !== '') names.add(name);
  }
  for (const { definition, replacesAt } of rules) {
    for (const [i, name] of definition.replaces.entries()) {
      const at = replacesAt[i] ?? 0;
      if (name === definition.name) findings.mistake(at, 'a rule cannot replace itself');
      else if (!names.has(name)) {
        const message = `no rule is called ${quoted(name)}`;
        if (isWhole) findings.mistake(at, `${message}; ${knownInstead(name, [...names])}`);
        else findings.note(at, `${message} in this document`);
      }
    }
  }
  checkCircles(rules, findings);
}

interface Edge {
  readonly to: string;
  readonly at: Offset;
}

/** Searches circles in the graph of names, iteratively; each name is visited once. */
function checkCircles(rules: readonly Located[], findings: Findings): void {
  const edges = new Map<string, Edge[]>();
  for (const { definition, replacesAt } of rules) {
    if (definition.name === '') continue;
    const from = edges.get(definition.name) ?? [];
    for (const [i, to] of definition.replaces.entries()) {
      if (to !== definition.name) from.push({ to, at: replacesAt[i] ?? 0 });
    }
    edges.set(definition.name, from);
  }
  const done = new Set<string>();
  for (const start of edges.keys()) {
    if (done.has(start)) continue;
    const path = [{ name: start, next: 0 }];
    const onPath = new Set([start]);
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const edge = edges.get(last.name)?.[last.next];
      last.next += 1;
      if (edge === undefined) {
        done.add(last.name);
        onPath.delete(last.name);
        path.pop();
      } else if (onPath.has(edge.to)) {
        findings.mistake(edge.at, `rules replace each other in a circle, back to ${quoted(edge.to)}`);
      } else if (!done.has(edge.to)) {
        path.push({ name: edge.to, next: 0 });
        onPath.add(edge.to);
      }
    }
  }
}
