/** `quorate rules show`: prints the rules of a running cluster as a document that can be edited and applied. */
import { documentText } from '../rules/native-form.ts';
import { printable } from '../rules/mistakes.ts';
import { ruleInWords } from '../rules/words.ts';
import type { ClusterRulesOptions } from './rules-apply.ts';
import { type KnownRules, readKnownRules } from './rules-in-cluster.ts';

/** @throws ClusterCommandError if the cluster cannot be asked */
export async function showRules({ node, json, print }: ClusterRulesOptions): Promise<void> {
  const known = await readKnownRules(node);
  if (json === true) {
    const { version, definitions, rules } = known;
    print(JSON.stringify({ version, ...(definitions && { definitions }), rules }, null, 2));
    return;
  }
  print(`# version ${known.version} of the rules, as ${node} says`);
  for (const line of linesOf(known)) print(printable(line));
}

/** Rules without a document are printed as comments. */
function linesOf({ definitions, rules }: KnownRules): string[] {
  if (definitions === undefined)
    return [
      '# They did not come as a document: `quorate rules apply rules.yaml` puts one in their place.',
      ...rules.map(({ id, limit, windowMillis }) => `# ${id}: ${limit} per ${windowMillis} ms`),
    ];
  const text = documentText(definitions);
  if (text !== undefined) return text.trimEnd().split('\n');
  return [
    '# Some are of nested descriptors, as envoyproxy/ratelimit has them: keep the file that they came from.',
    ...definitions.map((rule) => `# ${rule.id}: ${ruleInWords(rule)}`),
  ];
}
