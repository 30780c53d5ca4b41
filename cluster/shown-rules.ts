/** The rules that a cluster decides by now, read at one of its nodes, whichever form they were given in. */
import { askNode, type NodeBody } from '../src/cli/ask-node.ts';
import { doorUrl } from '../src/cli/door-url.ts';
import type { Rule } from '../src/api/rule.ts';
import type { ClusterConfig } from '../src/config/config.ts';
import type { RuleDefinition } from '../src/rules/rule-definition.ts';
import { definitionsOfTable } from '../src/rules/table-form.ts';

export interface ShownRules {
  readonly version: number;
  readonly definitions: readonly RuleDefinition[];
}

const READ_MILLIS_MAX = 1_000;

/** Undefined: no node says. */
export async function rulesShown({
  nodes,
  tls,
}: Pick<ClusterConfig, 'nodes' | 'tls'>): Promise<ShownRules | undefined> {
  for (const node of nodes) {
    const { status, body } = await askNode(new URL('/v1/rules', doorUrl(node, tls)), READ_MILLIS_MAX);
    if (status === 200) return shownIn(body);
  }
  return undefined;
}

/** As a node of this version tells them: those that came as a document have `definitions`. */
function shownIn({ version, rules, definitions }: NodeBody): ShownRules {
  return {
    version: version as number,
    definitions: (definitions ?? definitionsOfTable(rules as readonly Rule[])) as readonly RuleDefinition[],
  };
}
