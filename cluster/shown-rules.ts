/** Reads the rules in force from a node of the cluster, whatever form they were written in. */
import { askNode, type NodeBody } from '../src/cli/ask-node.ts';
import { listenerUrl } from '../src/cli/listener-url.ts';
import type { Rule } from '../src/api/rule.ts';
import type { ClusterConfig } from '../src/config/config.ts';
import type { RuleDefinition } from '../src/rules/rule-definition.ts';
import { definitionsOfTable } from '../src/rules/limiter-rules.ts';

/** The rules in force, with their version. */
export interface ShownRules {
  readonly version: number;
  readonly definitions: readonly RuleDefinition[];
}

const READ_MILLIS_MAX = 1_000;

/** Returns the rules of the first node that reports them, or undefined if none does. */
export async function rulesShown({
  nodes,
  tls,
}: Pick<ClusterConfig, 'nodes' | 'tls'>): Promise<ShownRules | undefined> {
  for (const node of nodes) {
    const { status, body } = await askNode(new URL('/v1/rules', listenerUrl(node, tls)), READ_MILLIS_MAX);
    if (status === 200) return shownIn(body);
  }
  return undefined;
}

/** Rules that were set with a document have `definitions`; others are converted. */
function shownIn({ version, rules, definitions }: NodeBody): ShownRules {
  return {
    version: version as number,
    definitions: (definitions ?? definitionsOfTable(rules as readonly Rule[])) as readonly RuleDefinition[],
  };
}
