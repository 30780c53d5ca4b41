/**
 * Finds out whether this node belongs to its cluster, from the state of group 0 on this node and from refusals by other
 * nodes. It only reports.
 */
import type { NodeId } from '../../raft/types.ts';
import type { MembershipState } from '../api/cluster-report.ts';
import type { Admission } from './admission.ts';
import type { MetaState } from './cluster-state.ts';
import type { Refusal } from '../wire/hello.ts';

/** The membership of this node, for operators. */
export type MembershipStatus = { readonly state: Exclude<MembershipState, Exclusion['state']> } | Exclusion;

/** Why this node may no longer take part. Final. */
export interface Exclusion {
  readonly state: Extract<MembershipState, 'removed' | 'refused'>;
  readonly reason: string;
}

/** Far more than a cluster has nodes. */
const REFUSALS_MAX = 128;

/** The membership of this node. */
export class OwnMembership {
  readonly #admission: Admission;
  #state: MetaState | undefined;
  /** The nodes that refused this node the last time they met, with the reason. */
  readonly #refusals = new Map<NodeId, Refusal>();
  /** Final once it is set. */
  #verdict: Exclusion | undefined;

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  /** Takes over the state of group 0. */
  update(state: MetaState): void {
    this.#state = state;
    for (const peer of this.#refusals.keys()) if (this.#isGone(peer)) this.#refusals.delete(peer);
    const { node, incarnation } = this.#admission.self;
    const isNeeded = state.leaving.some(({ id }) => id === node);
    const listed = [...state.nodes, ...state.leaving].find(({ id }) => id === node);
    if (state.retired.includes(node) && !isNeeded) {
      const reason = `node ${node} was removed from the cluster, and is no longer needed: stop its process`;
      this.#verdict ??= { state: 'removed', reason };
    } else if (listed !== undefined && (listed.incarnation ?? incarnation) !== incarnation) {
      const reason = `another database is recorded under node id ${node}`;
      this.#verdict ??= { state: 'refused', reason };
    }
  }

  /** A peer refused this node. */
  refusedBy(peer: NodeId, refusal: Refusal): void {
    if (!this.#isGone(peer)) this.#refusals.set(peer, refusal);
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > REFUSALS_MAX && oldest !== undefined) this.#refusals.delete(oldest);
    const { code, text: reason } = refusal;
    if (code === 'removed') this.#verdict ??= { state: 'removed', reason };
    if (code === 'otherIncarnation') this.#verdict ??= { state: 'refused', reason };
  }

  /**
   * Whether the peer has left the cluster for good. This node no longer dials it, so its refusal would stay forever.
   */
  #isGone(peer: NodeId): boolean {
    if (this.#state === undefined) return false;
    const { retired, leaving } = this.#state;
    return retired.includes(peer) && !leaving.some(({ id }) => id === peer);
  }

  /** A peer accepted this node. */
  welcomedBy(peer: NodeId): void {
    this.#refusals.delete(peer);
  }

  /** The nodes that refused this node the last time they met. */
  get refusals(): ReadonlyMap<NodeId, Refusal> {
    return this.#refusals;
  }

  /** Why this node no longer takes part; undefined while it does. */
  get verdict(): Exclusion | undefined {
    return this.#verdict;
  }

  /**
   * The membership for operators.
   *
   * @param isReady whether every partition of this node is here and has a leader. Then refusals by some peers do not
   * matter.
   */
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
