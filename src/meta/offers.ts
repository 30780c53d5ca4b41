/**
 * The offers of other nodes to hold partitions, on a node that leads some of them: under which version each was made.
 * Bounded: an offer is kept for groups that this node leads, of nodes that are connected, and the newest only.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';

export class Offers {
  readonly #versions = new Map<GroupId, Map<NodeId, number>>();
  readonly #leads: (group: GroupId) => boolean;

  constructor(leads: (group: GroupId) => boolean) {
    this.#leads = leads;
  }

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

  /** A node is gone; it offers itself again when it is back. */
  gone(node: NodeId): void {
    for (const versions of this.#versions.values()) versions.delete(node);
  }

  /** Forgets the groups that this node does not lead any more. */
  prune(): void {
    for (const group of this.#versions.keys()) if (!this.#leads(group)) this.#versions.delete(group);
  }
}
