/**
 * Checks the invariants across all nodes: one leader per term, and one state and one configuration per index, in every
 * group. The tests report events to it; it reads nothing itself.
 */
import { assert } from '../../../raft/assert.ts';
import type { GroupConfig, GroupId, NodeId } from '../../../raft/types.ts';

export class Agreement {
  readonly #digests = new Map<string, number>();
  readonly #configs = new Map<string, string>();
  readonly #leaders = new Map<string, NodeId>();
  readonly #appliedMax = new Map<GroupId, number>();

  /** The last index that was applied anywhere, ever. */
  appliedMax(group: GroupId): number {
    return this.#appliedMax.get(group) ?? 0;
  }

  /** A node applied everything up to `index`, or restored it. */
  applied(group: GroupId, index: number, digest: number): void {
    const known = earliest(this.#digests, `${group}:${index}`, digest);
    assert(known === digest, `state-machine safety: states of group ${group} differ at ${index}`);
    this.#appliedMax.set(group, Math.max(this.appliedMax(group), index));
  }

  /** A configuration is in effect on a node that has applied everything up to `index`. */
  configured(group: GroupId, index: number, config: GroupConfig): void {
    const text = JSON.stringify(config);
    const known = earliest(this.#configs, `${group}:${index}`, text);
    assert(known === text, `configurations of group ${group} differ at ${index}: ${known} and ${text}`);
  }

  leads(group: GroupId, term: number, node: NodeId): void {
    const known = earliest(this.#leaders, `${group}:${term}`, node);
    assert(known === node, `election safety: ${known} and ${node} lead term ${term} of group ${group}`);
  }
}

/** The first value reported for `key`. */
function earliest<T>(reported: Map<string, T>, key: string, value: T): T {
  const known = reported.get(key) ?? value;
  reported.set(key, known);
  return known;
}
