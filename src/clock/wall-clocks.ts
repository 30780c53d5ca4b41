/**
 * How late it is in UTC by the wall clocks of the nodes. A wall clock may be wrong, so no single one is believed: UTC is what a majority
 * of all nodes have reached. It reads no clock itself. What goes by it: see `UtcSteps`.
 */
import type { NodeId } from '../../raft/types.ts';

/** What a peer said longer ago is not known any more: its clock may have been set since. Peers are asked once a second. */
const HEARD_MILLIS = 10_000;

interface Heard {
  /** By how much the peer's wall clock was ahead of this node's monotonic one. The answer took a while, so it was more. */
  readonly aheadMillis: number;
  readonly heardMillis: number;
}

export class WallClocks {
  /** By node; those that are none any more are not asked for. */
  readonly #heard = new Map<NodeId, Heard>();

  /** @param receivedMillis on this node's monotonic clock */
  add(node: NodeId, wallMillis: number, receivedMillis: number): void {
    this.#heard.set(node, { aheadMillis: wallMillis - receivedMillis, heardMillis: receivedMillis });
  }

  /**
   * The latest time that a majority of these nodes have reached; undefined if less than a majority were heard.
   *
   * @param nodes all nodes of the cluster
   * @param own reading of this node's wall clock
   * @param nowMillis on this node's monotonic clock
   */
  utcMillis(
    nodes: readonly NodeId[],
    own: { readonly nodeId: NodeId; readonly wallMillis: number },
    nowMillis: number,
  ): number | undefined {
    for (const node of this.#heard.keys()) if (!nodes.includes(node)) this.#heard.delete(node);
    const reached: number[] = [];
    for (const node of nodes) {
      const heard = this.#heard.get(node);
      if (node === own.nodeId) reached.push(own.wallMillis);
      else if (heard !== undefined && nowMillis - heard.heardMillis <= HEARD_MILLIS)
        reached.push(nowMillis + heard.aheadMillis);
    }
    return reached.sort((a, b) => b - a)[Math.floor(nodes.length / 2)];
  }
}
