/** Where the replicas of a partition are, how far behind, and where they go. */
import type { ReportedPartition } from '../api/cluster-report.ts';
import { nodesInWords } from './words.ts';

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
  if (partition.placed) return 'in place';
  const ways = [
    ...(to.length > 0 ? [`to ${nodesInWords(to)}`] : []),
    ...(from.length > 0 ? [`away from ${nodesInWords(from)}`] : []),
  ];
  return ['moving', ...ways].join(' ');
}
