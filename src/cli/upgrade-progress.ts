/** Finds out from the reports of the nodes how far an upgrade is, and what to do next. Pure functions. */
import type { ClusterReport, ReportedNode } from '../api/cluster-report.ts';

/** The state of an upgrade. Versions are protocol versions. */
export interface UpgradeProgress {
  /** The version of the cluster. */
  readonly version: number;
  /** The highest version that any node speaks: the goal of the upgrade. */
  readonly target: number;
  /** Nodes that do not speak the target version, as far as is known. */
  readonly behind: readonly ReportedNode[];
  readonly isFinished: boolean;
  /** The state and the next step, in a sentence. */
  readonly text: string;
}

/** Returns undefined if the node that was asked knows nothing of its cluster yet. */
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
