/** What is wrong with a cluster, from what its nodes say: sentences with what to do. Pure. */
import type { ReportedPartition } from '../api/cluster-report.ts';
import { listed } from './listed.ts';
import { sharedPlaces } from './shared-places.ts';
import type { Survey, SurveyedNode } from './survey.ts';
import { bytesText } from './text-table.ts';
import { upgradeProgress } from './upgrade-progress.ts';

/** A replica that lacks more has not caught up: reports are half a second old, and a busy partition has moved on. */
export const LAG_ENTRIES_MAX = 10_000;
/** So many times the floor must be free. */
const FREE_FLOORS_MIN = 4;

export interface Health {
  /** What keeps requests from being decided, or may soon. */
  readonly problems: readonly string[];
  /** What somebody wanted so, or passes. */
  readonly notes: readonly string[];
  readonly partitions: PartitionsHealth;
}

export interface PartitionsHealth {
  readonly count: number;
  readonly withoutLeader: readonly number[];
  /** A replica of theirs is on a node that is down. */
  readonly withReplicaDown: readonly number[];
  readonly notCaughtUp: readonly {
    readonly partition: number;
    readonly node: number;
    readonly lag: number;
  }[];
  /** They deny everybody for a restore, the last of them for so many milliseconds more. */
  readonly restored: readonly number[];
  readonly restoredMillis: number;
  /** Their copies are not where they should be yet. */
  readonly moving: readonly number[];
}

export function healthOf({ report, nodes, failed }: Survey): Health {
  const up = new Set(nodes.filter(({ node }) => node.up).map(({ node }) => node.id));
  const partitions = partitionsHealth(report.partitions, up);
  const problems: string[] = nodes.flatMap(problemsOf);
  const notes: string[] = failed.map(({ via, problem }) => `${via} was asked first: ${problem}`);
  const { withoutLeader, withReplicaDown, notCaughtUp, moving } = partitions;
  if (withoutLeader.length > 0)
    problems.push(
      `partition ${listed(withoutLeader)}: no leader; bring back a majority of the nodes that hold it`,
    );
  if (withReplicaDown.length > 0)
    problems.push(
      `partition ${listed(withReplicaDown)}: fewer copies are up than there should be; start the nodes that are down, or replace them`,
    );
  for (const { partition, node, lag } of notCaughtUp)
    problems.push(
      `partition ${partition}: node ${node} lacks ${lag} entries; it catches up, or its disk is slow`,
    );
  const { restored, restoredMillis } = partitions;
  if (restored.length > 0)
    problems.push(
      `partition ${listed(restored)}: restored, so everybody is denied until what may be missing has left the window of each rule: ` +
        `${Math.ceil(restoredMillis / 1_000)} s more at most`,
    );
  if (report.rules === null) problems.push('no rules are known: look at the log of the nodes');
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
      notes.push(`node ${node.id} is drained; \`quorate drain --node ${node.id} --undo\` ends that`);
  }
  return { problems, notes, partitions };
}

function problemsOf({ node, readiness, metrics, problem }: SurveyedNode): string[] {
  const { id, up, clock } = node;
  const found: string[] = [];
  if (problem !== undefined)
    found.push(
      up
        ? `node ${id} is up, but does not answer here (${problem}); its HTTP door may be out of reach`
        : `node ${id} is down (${problem}); start it again`,
    );
  const { status, reason } = readiness ?? {};
  if (readiness !== undefined && status !== 'ready' && status !== 'draining')
    found.push(`node ${id} is not ready: ${text(status)}${reason === undefined ? '' : `, ${text(reason)}`}`);
  if (clock === 'fast' || clock === 'slow')
    found.push(
      `node ${id}: its clock is too ${clock}, so it leads nothing; check the time daemon of its machine`,
    );
  const free = metrics?.value('quorate_disk_free_bytes');
  const floor = metrics?.value('quorate_disk_free_floor_bytes');
  if (free !== undefined && floor !== undefined && free < FREE_FLOORS_MIN * floor)
    found.push(
      `node ${id} has ${bytesText(free)} of its disk left; it takes nothing below ${bytesText(floor)}`,
    );
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

/** Which version a node runs, as it tells. */
export function versionOf(metrics: SurveyedNode['metrics']): string | undefined {
  return metrics?.series('quorate_build_info')[0]?.labels['version'];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : 'unknown';
}
