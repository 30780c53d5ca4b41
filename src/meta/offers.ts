/**
 * The offers of other nodes to hold partitions that this node leads, with the version of the placement of each.
 * Bounded: only the newest offer is kept, for groups that this node leads, and from connected nodes.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';

/** The offers to one node. */
export class Offers {
  readonly #versions = new Map<GroupId, Map<NodeId, number>>();
  readonly #leads: (group: GroupId) => boolean;

  constructor(leads: (group: GroupId) => boolean) {
    this.#leads = leads;
  }

  /** Records offers from a node. */
  offered(from: NodeId, version: number, groups: readonly GroupId[]): void {
    for (const group of groups) {
      if (!this.#leads(group)) continue;
      const versions = this.#versions.get(group) ?? new Map<NodeId, number>();
      this.#versions.set(group, versions);
      versions.set(from, Math.max(version, versions.get(from) ?? 0));
    }
  }

  /** The version under which `node` offered itself; 0 if it did not. */
  versionOf(group: GroupId, node: NodeId): number {
    return this.#versions.get(group)?.get(node) ?? 0;
  }

  /** The node disconnected. It repeats its offers when it is back. */
  gone(node: NodeId): void {
    for (const versions of this.#versions.values()) versions.delete(node);
  }

  /** Drops the offers for groups that this node no longer leads. */
  prune(): void {
    for (const group of this.#versions.keys()) if (!this.#leads(group)) this.#versions.delete(group);
  }
}
