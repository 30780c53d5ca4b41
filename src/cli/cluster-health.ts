/**
 * Finds problems of a cluster in the reports of its nodes, and what to do about each. Also how far an upgrade is. Pure
 * functions.
 */
import type { ClusterReport, ReportedNode, ReportedPartition } from '../api/cluster-report.ts';
import { RECOVERY_TERMS_AHEAD } from '../backup/recovered-record.ts';
import { listed, bytesText } from './text-table.ts';
import type { Survey, SurveyedNode } from './survey.ts';

/** A replica that lacks more entries has not caught up. Fewer are normal, because reports are half a second old. */
export const LAG_ENTRIES_MAX = 10_000;
/** Warn if less than this many times the disk floor is free. */
const FREE_FLOORS_MIN = 4;

/** A problem, in words. */
export interface Problem {
  /** The problem itself. */
  readonly found: string;
  /** The step that solves it. */
  readonly action: string;
  /** The problem goes away by itself. */
  readonly passes?: true;
}

/** The problems of a cluster. */
export interface Health {
  /** Problems that keep requests from being decided, or soon may. */
  readonly problems: readonly Problem[];
  /** States that an operator wanted, or that pass. */
  readonly notes: readonly string[];
  readonly partitions: PartitionsHealth;
}

/** The problems of the partitions, by partition id. */
export interface PartitionsHealth {
  readonly count: number;
  readonly withoutLeader: readonly number[];
  /** Partitions with a replica on a node that is down. */
  readonly withReplicaDown: readonly number[];
  readonly notCaughtUp: readonly {
    readonly partition: number;
    readonly node: number;
    readonly lag: number;
  }[];
  /** Partitions that deny everything after a restore. The last of them ends after `restoredMillis`. */
  readonly restored: readonly number[];
  readonly restoredMillis: number;
  /** Partitions whose copies are not all in place yet. */
  readonly moving: readonly number[];
}

/** Returns the problems of a cluster. */
export function healthOf({ report, nodes, failed }: Survey): Health {
  const up = new Set(nodes.filter(({ node }) => node.up).map(({ node }) => node.id));
  const partitions = partitionsHealth(report.partitions, up);
  // Elections alone never come that far.
  const isRecovered = report.partitions.some(({ term }) => term >= RECOVERY_TERMS_AHEAD);
  const problems: Problem[] = nodes.flatMap((node) => problemsOf(node, isRecovered));
  const notes: string[] = failed.map(
    ({ url, problem }) => `${url} was asked first, without success: ${problem}`,
  );
  problems.push(...partitionProblems(partitions, isRecovered));
  if (report.rules === null)
    problems.push({ found: 'no rules are known', action: 'check the logs of the nodes' });
  const { moving } = partitions;
  if (moving.length > 0 || report.settledVersion < report.version)
    notes.push(
      `${moving.length} of ${partitions.count} partitions move: version ${report.version} of the list of nodes is not settled`,
    );
  const versions = new Set(nodes.flatMap(({ metrics }) => versionOf(metrics) ?? []));
  if (versions.size > 1) notes.push(`nodes run several versions: ${[...versions].join(', ')}`);
  const upgrade = upgradeProgress(report);
  if (upgrade?.isFinished === false) notes.push(upgrade.text);
  notes.push(...sharedPlaces(report));
  for (const { node } of nodes) {
    if (node.draining === true)
      notes.push(`node ${node.id} is drained; \`quorate drain ${node.id} --undo\` ends that`);
  }
  return { problems, notes, partitions };
}

/** The problem and its action as one sentence. */
export function problemText({ found, action }: Problem): string {
  return `${found}; ${action}`;
}

function partitionProblems(health: PartitionsHealth, isRecovered: boolean): Problem[] {
  const { withoutLeader, withReplicaDown, notCaughtUp, restored, restoredMillis } = health;
  const problems: Problem[] = [];
  if (withoutLeader.length > 0)
    problems.push({
      found: `partition ${listed(withoutLeader)}: no leader`,
      action: 'bring back a majority of the nodes that hold it',
    });
  if (withReplicaDown.length > 0)
    problems.push({
      found: `partition ${listed(withReplicaDown)}: fewer copies are up than there should be`,
      action: isRecovered
        ? 'replace the nodes that were lost, and start the others that are down'
        : 'start the nodes that are down, or replace them',
    });
  for (const { partition, node, lag } of notCaughtUp)
    problems.push({
      found: `partition ${partition}: node ${node} lacks ${lag} entries`,
      action: 'wait until it catches up, or check its disk',
      passes: true,
    });
  if (restored.length > 0)
    problems.push({
      found: `partition ${listed(restored)}: restored, so requests are denied for one window of their rule, and those that give a timestamp for two minutes more`,
      action: `wait; the longest ends in ${Math.ceil(restoredMillis / 1_000)} s`,
      passes: true,
    });
  return problems;
}

/** What to do about a node that is down. A node that was lost before a recovery must not come back. */
function startAgain(id: number, isRecovered: boolean): string {
  return isRecovered
    ? `if it was lost when this cluster was recovered, never start it: \`quorate nodes add <new id> --replace ${id}\`; otherwise start it again`
    : 'start it again';
}

function problemsOf({ node, readiness, metrics, problem }: SurveyedNode, isRecovered: boolean): Problem[] {
  const { id, up, clock } = node;
  const found: Problem[] = [];
  if (problem !== undefined)
    found.push(
      up
        ? {
            found: `node ${id} is up, but does not answer here: ${problem}`,
            action: 'mend that, or let this machine reach its HTTP address',
          }
        : { found: `node ${id} is down (${problem})`, action: startAgain(id, isRecovered) },
    );
  const { status, reason } = readiness ?? {};
  if (readiness !== undefined && status !== 'ready' && status !== 'draining')
    found.push({
      found: `node ${id} is not ready: ${text(status)}${reason === undefined ? '' : `, ${text(reason)}`}`,
      action: 'check its log if this does not change',
    });
  if (clock === 'fast' || clock === 'slow')
    found.push({
      found: `node ${id}: its clock is too ${clock}, so it leads no partition`,
      action: 'check the time daemon of its machine',
    });
  const free = metrics?.value('quorate_disk_free_bytes');
  const floor = metrics?.value('quorate_disk_free_floor_bytes');
  if (free !== undefined && floor !== undefined && free < FREE_FLOORS_MIN * floor)
    found.push({
      found: `node ${id} has ${bytesText(free)} of disk space left, and takes no requests below ${bytesText(floor)}`,
      action: 'free some disk space',
    });
  return found;
}

function partitionsHealth(
  partitions: readonly ReportedPartition[],
  up: ReadonlySet<number>,
): PartitionsHealth {
  const idsOf = (isMeant: (partition: ReportedPartition) => boolean): number[] =>
    partitions.filter(isMeant).map(({ id }) => id);
  return {
    count: partitions.length,
    withoutLeader: idsOf(({ leader }) => leader === 0),
    withReplicaDown: idsOf(({ replicas }) => replicas.some(({ node }) => !up.has(node))),
    notCaughtUp: partitions.flatMap(({ id: partition, commit, replicas }) =>
      replicas
        .filter(({ node, applied }) => up.has(node) && commit - applied > LAG_ENTRIES_MAX)
        .map(({ node, applied }) => ({ partition, node, lag: commit - applied })),
    ),
    restored: idsOf(({ restoredMillis = 0 }) => restoredMillis > 0),
    restoredMillis: Math.max(0, ...partitions.map(({ restoredMillis = 0 }) => restoredMillis)),
    moving: idsOf(({ placed }) => !placed),
  };
}

/** The version that a node reports in its metrics. */
export function versionOf(metrics: SurveyedNode['metrics']): string | undefined {
  return metrics?.series('quorate_build_info')[0]?.labels['version'];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : 'unknown';
}

/**
 * Finds partitions whose copies would fail together because they are on one host or in one zone, and describes them in
 * sentences. A node without a label counts as a place of its own.
 */
export function sharedPlaces({ nodes, partitions }: Pick<ClusterReport, 'nodes' | 'partitions'>): string[] {
  const zones = new Map(nodes.map((node) => [node.id, zoneOf(node, nodes)]));
  const hosts = new Map(nodes.map(({ id, host }) => [id, host]));
  const sharing = (places: ReadonlyMap<number, string | undefined>): number[] =>
    partitions
      .filter(({ replicas }) => {
        const said = replicas.flatMap(({ node }) => places.get(node) ?? []);
        return new Set(said).size < said.length;
      })
      .map(({ id }) => id);
  const [onHost, inZone] = [sharing(hosts), sharing(zones)];
  return [
    ...(onHost.length > 0
      ? [`partition ${listed(onHost)}: copies share a host, and fail with it; add nodes on other hosts`]
      : []),
    ...(inZone.length > 0
      ? [
          `partition ${listed(inZone)}: copies share a zone; once all have moved, no more than its nodes and hosts require`,
        ]
      : []),
    ...contradictions(nodes),
  ];
}

/** The zone of a node. A host is in one zone: that of its node with the lowest id that has a zone. */
function zoneOf({ host, zone }: ReportedNode, nodes: readonly ReportedNode[]): string | undefined {
  if (host === undefined) return zone;
  const named = nodes.filter((node) => node.host === host && node.zone !== undefined);
  return named.toSorted((a, b) => a.id - b.id)[0]?.zone;
}

function contradictions(nodes: readonly ReportedNode[]): string[] {
  return nodes.flatMap((node) => {
    const counts = zoneOf(node, nodes);
    if (node.zone === undefined || node.zone === counts) return [];
    return [
      `node ${node.id} is labelled zone ${node.zone}, and its host ${node.host} is in zone ${counts} by another node; that counts`,
    ];
  });
}

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

/**
 * Finds out from the reports of the nodes how far an upgrade is, and what to do next. Returns undefined if the node that
 * was asked knows nothing of its cluster yet.
 */
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
