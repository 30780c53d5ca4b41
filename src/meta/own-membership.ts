/**
 * Whether this node belongs to its cluster: from what group 0 says here, and from what others said when they refused it.
 * It only tells; nothing about the cluster is decided by it.
 */
import type { NodeId } from '../../raft/types.ts';
import type { MembershipState } from '../api/cluster-report.ts';
import type { Admission } from './admission.ts';
import type { MetaState } from './cluster-state.ts';
import type { Refusal } from '../wire/hello.ts';

export type MembershipStatus = { readonly state: Exclude<MembershipState, Exclusion['state']> } | Exclusion;

export interface Exclusion {
  readonly state: Extract<MembershipState, 'removed' | 'refused'>;
  readonly reason: string;
}

/** Far more than a cluster has nodes. */
const REFUSALS_MAX = 128;

export class OwnMembership {
  readonly #admission: Admission;
  #state: MetaState | undefined;
  /** Who refused this node when it was last met, and why. */
  readonly #refusals = new Map<NodeId, Refusal>();
  /** Nobody takes it back. */
  #verdict: Exclusion | undefined;

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  /** Group 0 says so here. */
  update(state: MetaState): void {
    this.#state = state;
    for (const peer of this.#refusals.keys()) if (this.#isGone(peer)) this.#refusals.delete(peer);
    const { node, incarnation } = this.#admission.self;
    const isNeeded = state.leaving.some(({ id }) => id === node);
    const listed = [...state.nodes, ...state.leaving].find(({ id }) => id === node);
    if (state.retired.includes(node) && !isNeeded) {
      const reason = `node ${node} was removed from the cluster, and is needed no more`;
      this.#verdict ??= { state: 'removed', reason };
    } else if (listed !== undefined && (listed.incarnation ?? incarnation) !== incarnation) {
      const reason = `another database is recorded under node id ${node}`;
      this.#verdict ??= { state: 'refused', reason };
    }
  }

  refusedBy(peer: NodeId, refusal: Refusal): void {
    if (!this.#isGone(peer)) this.#refusals.set(peer, refusal);
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > REFUSALS_MAX && oldest !== undefined) this.#refusals.delete(oldest);
    const { code, text: reason } = refusal;
    if (code === 'removed') this.#verdict ??= { state: 'removed', reason };
    if (code === 'otherIncarnation') this.#verdict ??= { state: 'refused', reason };
  }

  /** It left the cluster for good: nobody asks it any more, so it can never take back what it said. */
  #isGone(peer: NodeId): boolean {
    if (this.#state === undefined) return false;
    const { retired, leaving } = this.#state;
    return retired.includes(peer) && !leaving.some(({ id }) => id === peer);
  }

  welcomedBy(peer: NodeId): void {
    this.#refusals.delete(peer);
  }

  /** Those that have refused this node since they last welcomed it. */
  get refusals(): ReadonlyMap<NodeId, Refusal> {
    return this.#refusals;
  }

  /** What nobody takes back: this node takes part no more. */
  get verdict(): Exclusion | undefined {
    return this.#verdict;
  }

  /** @param isReady every partition that should be here is, and has a leader: who refuses this node hardly matters */
  current(isReady: boolean): MembershipStatus {
    if (this.#verdict !== undefined) return this.#verdict;
    if (!isReady) {
      for (const { code, text: reason } of this.#refusals.values()) {
        if (code === 'otherFacts' || code === 'otherVersion') return { state: 'refused', reason };
      }
    }
    const { node } = this.#admission.self;
    const isMember = [...(this.#state?.nodes ?? []), ...(this.#state?.leaving ?? [])].some(
      ({ id }) => id === node,
    );
    return { state: isMember ? 'member' : 'waiting' };
  }
}
