/** What a router is made of: where partitions may be, how their nodes are asked, and how long each step may take. */
import type { NodeId } from '../../raft/types.ts';
import type { Partition } from '../partition/partition.ts';
import type { Forwarder } from './forwarder.ts';

export interface RouterInit {
  readonly nodeId: NodeId;
  readonly placement: {
    readonly partitionCount: number;
    /** Nodes to ask who leads the partition, likeliest first. */
    candidatesOf(partition: number): readonly NodeId[];
  };
  /** The replicas on this node. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /** Can the replica here be relied on to learn who leads? Otherwise this node asks around. */
  readonly hearsOfLeaders: (partition: number) => boolean;
  readonly forwarder: Forwarder;
  readonly partitionOf: (userId: string) => number;
  readonly monotonicMillis: () => number;
  /** On the same clock: what is asked now came after this. */
  readonly doorMillis: () => number;
  readonly deadlineMillis: number;
  /** A node that is alive and has a request for so long, without refusing it, leads. */
  readonly silentTicksMax: number;
  /** Between two rounds of asking for a leader. */
  readonly pauseMillisMin: number;
  readonly pauseMillisMax: number;
  /** So long a replica here is relied on to hear of the next leader, before this node asks around. */
  readonly electionMillisMax: number;
  /** Ticks without a word of a leader, since somebody asked, until requests need not wait for their deadlines. */
  readonly breakerTicksMin: number;
  /** Until then a look of this node for the leader is answered, while requests need not wait. */
  readonly lookMillis: number;
  /** From the end of such a look to the next one. */
  readonly lookPauseTicks: number;
  /** Requests without an answer yet; more are refused as `overloaded`. */
  readonly openMax: number;
}
