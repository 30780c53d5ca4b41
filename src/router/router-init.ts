/** The dependencies and time limits of a router. Types only. */
import type { ArrivalClock } from '../api/clocks.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Partition } from '../partition/partition.ts';
import type { Forwarder } from './forwarder.ts';

/** What `Router` needs. */
export interface RouterInit extends ArrivalClock {
  readonly nodeId: NodeId;
  readonly placement: {
    readonly partitionCount: number;
    /** Nodes to ask who leads the partition, most likely first. */
    candidatesOf(partition: number): readonly NodeId[];
  };
  /** The replicas on this node. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /**
   * Whether the replica on this node will learn who leads (it is a member). Otherwise the router asks other nodes.
   */
  readonly hearsOfLeaders: (partition: number) => boolean;
  readonly forwarder: Forwarder;
  readonly partitionOf: (userId: string) => number;
  readonly deadlineMillis: number;
  /** Ticks after which a node that has a probe, is alive and has not refused it is taken for the leader. */
  readonly silentTicksMax: number;
  /** Pauses between two rounds of the search for a leader. */
  readonly pauseMillisMin: number;
  readonly pauseMillisMax: number;
  /** How long a replica on this node is relied on to learn the next leader, before other nodes are asked. */
  readonly electionMillisMax: number;
  /** Ticks without an answer of any leader after which the breaker may open. */
  readonly breakerTicksMin: number;
  /** Time limit of a probe of the breaker. */
  readonly searchMillis: number;
  /** From the end of such a probe to the next one. */
  readonly searchPauseTicks: number;
  /** The maximum number of unanswered requests; more are refused as `overloaded`. */
  readonly openMax: number;
}
