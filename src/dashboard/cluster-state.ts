/**
 * The nodes and the replicas of partitions, as the page shows them. A node that cannot be heard is never shown as
 * "up". Pure.
 */
import type { ReportedNode, ReportedPartition } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import { type Gravity, nodesInWords } from './words.ts';

/** A lag of fewer entries is not shown: it is normal, because reports come only twice a second. */
export const LAG_MIN = 1_000;

/** Whether the node has a replica of the partition. */
export function isHeldBy({ replicas }: ReportedPartition, node: number): boolean {
  return replicas.some((each) => each.node === node);
}

/** Log entries that the node's replica still lacks, as last reported. */
export function lagOf({ commit, replicas }: ReportedPartition, node: number): number {
  const replica = replicas.find((each) => each.node === node);
  return replica === undefined ? 0 : Math.max(0, commit - replica.match);
}

/** Planned moves of the replicas of a partition. */
interface Moves {
  /** Nodes that will get a replica. */
  readonly to: readonly number[];
  /** Nodes that will lose their replica. */
  readonly from: readonly number[];
}

/** Compares where the replicas are with where they should be. */
export function movesOf(partition: ReportedPartition): Moves {
  const { wanted, replicas } = partition;
  if (wanted === undefined) return { to: [], from: [] };
  return {
    to: wanted.filter((node) => !isHeldBy(partition, node)),
    from: replicas.map(({ node }) => node).filter((node) => !wanted.includes(node)),
  };
}

/** Says where the replicas move, or `in place`. */
export function placeInWords(partition: ReportedPartition): string {
  const { to, from } = movesOf(partition);
  if (partition.placed) return 'in place';
  const ways = [
    ...(to.length > 0 ? [`to ${nodesInWords(to)}`] : []),
    ...(from.length > 0 ? [`away from ${nodesInWords(from)}`] : []),
  ];
  return ['moving', ...ways].join(' ');
}

/** State of a node as the page shows it. */
interface NodeState {
  readonly state: string;
  readonly tone: Gravity;
  /** Age of the figures, as a time on the clock of the browser; undefined if they are current. */
  readonly asOfMillis: number | undefined;
}

/** From where and when the page heard of a node. */
interface Heard {
  /** This node serves the page. */
  readonly isSelf: boolean;
  /** When the feed was lost; undefined if it is live. */
  readonly oldMillis: number | undefined;
  /** When the last report arrived. */
  readonly heardMillis: number;
}

/** Chooses the state to show for a node, and the time it dates from. */
export function nodeStateOf(node: ReportedNode, { isSelf, oldMillis, heardMillis }: Heard): NodeState {
  const { up, draining, clock, silentMillis = 0 } = node;
  if (!up) return { state: 'silent', tone: 'bad', asOfMillis: heardMillis - silentMillis };
  if (oldMillis !== undefined)
    return isSelf
      ? { state: 'silent', tone: 'bad', asOfMillis: oldMillis }
      : { state: 'was up', tone: 'usual', asOfMillis: oldMillis };
  if (draining === true) return { state: 'drained', tone: 'warning', asOfMillis: undefined };
  return clock === null || clock === 'fit'
    ? { state: 'up', tone: 'good', asOfMillis: undefined }
    : { state: `clock too ${clock}`, tone: 'warning', asOfMillis: undefined };
}

/** How many log entries the node is behind, in the partition where it is furthest behind. */
export function lagIn({ partitions }: LiveCluster, node: number): number {
  const held = partitions.filter((partition) => isHeldBy(partition, node));
  return Math.max(0, ...held.map((partition) => lagOf(partition, node)));
}
