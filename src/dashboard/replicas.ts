/** Where the replicas of a partition are, how far behind, and where they go. */
import type { ReportedPartition } from '../api/cluster-report.ts';

/** Entries that a replica may be behind before that is shown: reports come twice a second. */
export const LAG_MIN = 1_000;

export function isHeldBy({ replicas }: ReportedPartition, node: number): boolean {
  return replicas.some((each) => each.node === node);
}

/** Entries that the replica has not got yet, as last told. */
export function lagOf({ commit, replicas }: ReportedPartition, node: number): number {
  const replica = replicas.find((each) => each.node === node);
  return replica === undefined ? 0 : Math.max(0, commit - replica.match);
}

export interface Moves {
  /** Nodes that are to hold it and do not yet. */
  readonly to: readonly number[];
  /** Nodes that hold it, and shall not. */
  readonly from: readonly number[];
}

export function movesOf(partition: ReportedPartition): Moves {
  const { wanted, replicas } = partition;
  if (wanted === undefined) return { to: [], from: [] };
  return {
    to: wanted.filter((node) => !isHeldBy(partition, node)),
    from: replicas.map(({ node }) => node).filter((node) => !wanted.includes(node)),
  };
}

export function placeInWords(partition: ReportedPartition): string {
  const { to, from } = movesOf(partition);
  if (partition.placed) return 'as it should be';
  const ways = [
    ...(to.length > 0 ? [`to ${to.join(', ')}`] : []),
    ...(from.length > 0 ? [`away from ${from.join(', ')}`] : []),
  ];
  return ['on its way', ...ways].join(' ');
}
