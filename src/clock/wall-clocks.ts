/**
 * Determines UTC from the wall clocks of all nodes. Any single wall clock may be wrong, so UTC is the time that a
 * majority of all nodes have reached. Reads no clock itself. `UtcSteps` uses the result.
 */
import type { NodeId } from '../../raft/types.ts';

/** Older readings are ignored, because the peer's clock may have been set since. Peers are asked once a second. */
const HEARD_MILLIS = 10_000;

interface Heard {
  /** The peer's wall clock minus this node's monotonic clock. The answer took some time, so this is a lower bound. */
  readonly aheadMillis: number;
  readonly heardMillis: number;
}

/** The wall clocks of the other nodes. */
export class WallClocks {
  /** By node. Nodes that left the cluster are ignored. */
  readonly #heard = new Map<NodeId, Heard>();

  /**
   * Adds a reading of a peer's wall clock.
   *
   * @param wallMillis milliseconds since 1970
   * @param receivedMillis this node's monotonic clock
   */
  add(node: NodeId, wallMillis: number, receivedMillis: number): void {
    this.#heard.set(node, { aheadMillis: wallMillis - receivedMillis, heardMillis: receivedMillis });
  }

  /**
   * The latest time that a majority of these nodes have reached, in milliseconds since 1970; undefined if less than a
   * majority were heard.
   *
   * @param nodes all nodes of the cluster
   * @param own a reading of this node's wall clock
   * @param nowMillis this node's monotonic clock
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
