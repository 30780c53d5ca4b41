/**
 * Prints what a user needs to know when the cluster of `npm start` is up: addresses, dashboard, leaders, rules, and an
 * example request.
 */
import { askNode, type NodeBody } from '../src/cli/ask-node.ts';
import { listenerUrl } from '../src/cli/node-fetch.ts';
import type { Rule } from '../src/api/rule.ts';
import type { ClusterConfig } from '../src/config/config.ts';
import type { RuleDefinition } from '../src/rules/rule-definition.ts';
import { definitionsOfTable } from '../src/rules/limiter-rules.ts';
import type { ClusterReport } from '../src/api/cluster-report.ts';
import { addressText } from '../src/api/node-address.ts';
import { ruleInWords } from '../src/rules/words.ts';
import { resolvePath } from '../src/tls/credentials.ts';
import { bytesText } from '../src/cli/text-table.ts';
import { LOG_BYTES_MAX } from './node-log.ts';

const RULES_SHOWN_MAX = 10;

/** Returns which node leads which partitions, as one line. */
export function describeLeaders(status: ClusterReport): string {
  const ids = [...new Set([0, ...status.nodes.map((node) => node.id)])];
  const parts = ids.map((id) => {
    const led = status.partitions
      .filter((partition) => partition.leader === id)
      .map((partition) => partition.id);
    return led.length === 0 ? undefined : `${id === 0 ? 'no node' : `node ${id}`} leads ${led.join(' ')}`;
  });
  return `partitions: ${parts.filter((part) => part !== undefined).join('; ')}`;
}

/** The rules in force, with their version. */
interface ShownRules {
  readonly version: number;
  readonly definitions: readonly RuleDefinition[];
}

const READ_MILLIS_MAX = 1_000;

/** Reads the rules in force from the first node that reports them. Undefined if none does. */
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

/**
 * Converts an answer of `GET /v1/rules`. Rules that were set with a document have `definitions`; others are converted.
 */
function shownIn({ version, rules, definitions }: NodeBody): ShownRules {
  return {
    version: version as number,
    definitions: (definitions ?? definitionsOfTable(rules as readonly Rule[])) as readonly RuleDefinition[],
  };
}

function sayRules(inForce: ShownRules | undefined): void {
  if (inForce === undefined) {
    console.log('  no node reports its rules yet: try GET /v1/rules');
    return;
  }
  const { version, definitions } = inForce;
  console.log(`  rules in force (version ${version}), each counted over all nodes together:`);
  for (const rule of definitions.slice(0, RULES_SHOWN_MAX))
    console.log(`    rule '${rule.id}': ${ruleInWords(rule)}`);
  const more = definitions.length - RULES_SHOWN_MAX;
  if (more > 0) console.log(`    and ${more} more; GET /v1/rules has all of them`);
}

/** Prints the introduction. */
export function introduce(
  config: ClusterConfig,
  { data, rules }: { readonly data: string; readonly rules: ShownRules | undefined },
  status: ClusterReport,
): void {
  const [first] = config.nodes;
  if (first === undefined) return;
  console.log('');
  const { tls } = config;
  const redisScheme = tls?.listeners === undefined ? 'redis' : 'rediss';
  for (const node of config.nodes) {
    const { id, resp, grpc } = node;
    const redis = resp === undefined ? '' : `  ${redisScheme}://${addressText(resp)}`;
    const envoy = grpc === undefined ? '' : `  grpc ${addressText(grpc)}`;
    const pid = status.nodes.find((other) => other.id === id)?.pid ?? '?';
    console.log(`  node ${id}  ${listenerUrl(node, tls)}${redis}${envoy}  pid ${pid}`);
  }
  console.log('');
  console.log(`  console: ${listenerUrl(first, tls)}/`);
  console.log(`  ${describeLeaders(status)}`);
  sayRules(rules);
  console.log(
    `  data and logs in ${data}, at most ${bytesText(2 * LOG_BYTES_MAX)} of logs a node; any node answers any request:`,
  );
  console.log('');
  const trust = tls?.listeners === undefined ? '' : ` --cacert ${resolvePath(tls.ca, data, first.id)}`;
  console.log(`  curl -s${trust} ${listenerUrl(first, tls)}/v1/allow -H 'content-type: application/json' \\`);
  console.log(`    -d '{"userId":"ada"}'`);
  console.log('');
  // npm does not forward signals, so killing npm itself would leave the nodes running.
  console.log(`Ctrl-C stops the cluster, and so does: kill ${process.pid}`);
}
