/** Where the replicas of a partition are, how far behind they are, and where they move. */
import type { ReportedPartition } from '../api/cluster-report.ts';
import { nodesInWords } from './words.ts';

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
export interface Moves {
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
