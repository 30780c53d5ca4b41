/**
 * The state that a replica has only while it leads. It is created when the replica becomes leader and dropped when
 * that ends, so nothing of one term is left over in the next. leader.ts, reconfigure.ts and read-index.ts use it.
 */
import { Progress, type InflightLimits } from './progress.ts';
import { NO_NODE, type NodeId } from './types.ts';

/** A read that no quorum has confirmed. `round` is the number of its leadership check; 0 until that was sent. */
interface WaitingRead {
  readonly ticket: number;
  round: number;
  index: number;
}

/** The bookkeeping of one leader in one term. */
export class Leadership {
  readonly #id: NodeId;
  readonly #inflight: InflightLimits;
  /** One per member, including this node, whose `match` is what its own disk has. */
  readonly progress = new Map<NodeId, Progress>();
  /** Bytes appended in this term and not committed yet. */
  uncommittedBytes = 0;
  heartbeatElapsedTicks = 0;
  /** The node that is to take over, or `NO_NODE`. Proposals are refused meanwhile. */
  transferTarget: NodeId = NO_NODE;
  transferElapsedTicks = 0;
  /**
   * The configuration may change only after this index is applied: the log up to there may contain a change, or a
   * quorum may not know of the last one. It starts as the no-op of this term, so that a leader has committed an
   * entry of its own before it changes members (this avoids the known bug of single-server changes).
   */
  pendingConfigIndex = 0;
  /** Unconfirmed reads, oldest first. Invariant: rounds ascend, except for reads with round 0 at the end. */
  readonly reads: WaitingRead[] = [];

  constructor(id: NodeId, inflight: InflightLimits) {
    this.#id = id;
    this.#inflight = inflight;
  }

  /**
   * Adds a member.
   *
   * @param from `next`: the first index to send. `since`: a member that acknowledges this index has on disk that it
   * is a member.
   */
  addProgress(member: NodeId, from: { readonly next: number; readonly since: number }): Progress {
    const progress = new Progress({ ...from, limits: this.#inflight });
    this.progress.set(member, progress);
    return progress;
  }

  /** The last index that `node` has acknowledged as on disk; 0 if none. */
  matchOf(node: NodeId): number {
    return this.progress.get(node)?.match ?? 0;
  }

  /** Whether `node` is this node, or a member that answered in this or the last round of check-quorum. */
  isReachable(node: NodeId): boolean {
    return node === this.#id || this.progress.get(node)?.isReachable === true;
  }
}
