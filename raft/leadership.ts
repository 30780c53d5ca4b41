/**
 * What a replica keeps only while it leads. It is made when the replica takes office and gone when that ends, whatever
 * the reason, so nothing of one term is left over for the next. State only: what a leader does with it is in leader.ts,
 * reconfigure.ts and read-index.ts.
 */
import { Progress, type InflightLimits } from './progress.ts';
import { NO_NODE, type NodeId } from './types.ts';

/** Round 0: its question was not asked yet. */
interface WaitingRead {
  readonly ticket: number;
  round: number;
  index: number;
}

export class Leadership {
  readonly #id: NodeId;
  readonly #inflight: InflightLimits;
  /** One per member, this node included (its `match` is what is on its own disk). */
  readonly progress = new Map<NodeId, Progress>();
  /** Appended in this term and not committed yet. */
  uncommittedBytes = 0;
  heartbeatElapsedTicks = 0;
  /** The node that is to take over; nothing is proposed meanwhile. */
  transferTarget: NodeId = NO_NODE;
  transferElapsedTicks = 0;
  /**
   * No change of the configuration before this index is applied: up to there the log may hold one, or a quorum may not
   * know of the last. At first that is the no-op of this term, so the leader has committed something of its own as well
   * (the bug of single-server changes).
   */
  pendingConfigIndex = 0;
  /** Reads that no quorum has confirmed, oldest first. Invariant: rounds do not decrease, but for the 0 of those at the end. */
  readonly reads: WaitingRead[] = [];

  constructor(id: NodeId, inflight: InflightLimits) {
    this.#id = id;
    this.#inflight = inflight;
  }

  /** `since` is the entry that shows whoever acknowledges it that this leader counts it as a member. */
  addProgress(member: NodeId, from: { readonly next: number; readonly since: number }): Progress {
    const progress = new Progress({ ...from, limits: this.#inflight });
    this.progress.set(member, progress);
    return progress;
  }

  /** What `node` has on disk, as far as it has said so. */
  matchOf(node: NodeId): number {
    return this.progress.get(node)?.match ?? 0;
  }

  /** This node is; another is if it is a member, and was heard from for as long as check-quorum looks back. */
  isReachable(node: NodeId): boolean {
    return node === this.#id || this.progress.get(node)?.isReachable === true;
  }
}
