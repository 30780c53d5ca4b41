/** How far the upgrade of a cluster is, from what its nodes say, and what to do next. Pure. */
import type { ClusterReport, ReportedNode } from '../api/cluster-report.ts';

export interface UpgradeProgress {
  /** Of the cluster. */
  readonly version: number;
  /** The highest that a node speaks: where the upgrade leads to. */
  readonly target: number;
  /** Nodes that are not known to speak it. */
  readonly behind: readonly ReportedNode[];
  readonly isFinished: boolean;
  /** What is so, and what to do, in a sentence. */
  readonly text: string;
}

/** Undefined: the node that told this knows nothing of its cluster yet. */
export function upgradeProgress({
  clusterVersion: version,
  nodes,
}: ClusterReport): UpgradeProgress | undefined {
  if (version === undefined) return undefined;
  const target = Math.max(version, ...nodes.map(({ speaks }) => speaks ?? version));
  const behind = nodes.filter(({ speaks, up }) => !up || (speaks ?? 0) < target);
  const isFinished = version === target;
  return { version, target, behind, isFinished, text: textOf({ version, target, behind, isFinished }) };
}

function textOf({ version, target, behind, isFinished }: Omit<UpgradeProgress, 'text'>): string {
  if (isFinished) return `the cluster is at version ${version}, and no node speaks a higher one`;
  if (behind.length === 0)
    return `all nodes speak version ${target}, and the cluster is at ${version}: \`quorate upgrade finish\` ends the upgrade`;
  const each = behind.map(({ id, up, speaks }) =>
    up ? `node ${id} speaks ${speaks ?? 'an unknown one'}` : `node ${id} is down`,
  );
  return `an upgrade to version ${target} is under way (${each.join(', ')}): upgrade and start the other nodes, one after the other`;
}
