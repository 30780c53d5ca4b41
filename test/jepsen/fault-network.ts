/**
 * The network between the nodes of a cluster under test: a fault proxy on the way from each node to each other node. A
 * node must be configured to find its peers at `addressOf`.
 */
import type { HostPort } from '../../src/api/node-address.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import type { NodeId } from '../../raft/types.ts';
import { FaultProxy } from './fault-proxy.ts';
import type { Faults } from './faults.ts';

/** The faults of the direction from `from` to `to`. */
export type FaultsBetween = (from: NodeId, to: NodeId) => Faults;

interface Link {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly proxy: FaultProxy;
}

export class FaultNetwork {
  readonly #links: readonly Link[];

  private constructor(links: readonly Link[]) {
    this.#links = links;
  }

  /** @param nodes the real address of each node */
  static async create(
    nodes: readonly { readonly id: NodeId; readonly peer: HostPort }[],
    random: RandomBelow,
  ): Promise<FaultNetwork> {
    const pairs = nodes.flatMap(({ id: from }) =>
      nodes.filter(({ id: to }) => to !== from).map(({ id: to, peer }) => ({ from, to, peer })),
    );
    const links = pairs.map(async ({ from, to, peer }) => ({
      from,
      to,
      proxy: await FaultProxy.listen(peer, random),
    }));
    return new FaultNetwork(await Promise.all(links));
  }

  /** The address at which `from` reaches `to`. */
  addressOf(from: NodeId, to: NodeId): HostPort {
    return { host: '127.0.0.1', port: this.link(from, to).port };
  }

  /** The ports of other nodes' links. A node that dials one of them bypasses the faults of its own links. */
  portsOfOthers(id: NodeId): number[] {
    return this.#links.filter(({ from }) => from !== id).map(({ proxy }) => proxy.port);
  }

  link(from: NodeId, to: NodeId): FaultProxy {
    const found = this.#links.find((link) => link.from === from && link.to === to);
    if (found === undefined) throw new Error(`there is no link from node ${from} to node ${to}`);
    return found.proxy;
  }

  /** Sets the faults of everything that travels from one node to another, whichever of them dialled. */
  set(from: NodeId, to: NodeId, faults: Faults): void {
    this.link(from, to).forward.set(faults);
    // A node sends only on connections that it dialled. The way back carries only the news that the connection was
    // closed.
    const { cut, blackHole, clog, neverRead, delayMillis, jitterMillis } = faults;
    const isStopped = [cut, blackHole, clog, neverRead].includes(true);
    this.link(to, from).backward.set({
      ...(isStopped && { clog: true }),
      ...(delayMillis !== undefined && { delayMillis }),
      ...(jitterMillis !== undefined && { jitterMillis }),
    });
  }

  /** Sets the faults of all directions. */
  setAll(faultsBetween: FaultsBetween): void {
    for (const { from, to } of this.#links) this.set(from, to, faultsBetween(from, to));
  }

  heal(): void {
    this.setAll(() => ({}));
  }

  /** The sum of what all directions passed, lost and damaged. */
  totals(): { bytesPassed: number; bytesLost: number; bitsFlipped: number; resets: number } {
    const totals = { bytesPassed: 0, bytesLost: 0, bitsFlipped: 0, resets: 0 };
    for (const { forward } of this.#links.map((link) => link.proxy)) {
      totals.bytesPassed += forward.bytesPassed;
      totals.bytesLost += forward.bytesLost;
      totals.bitsFlipped += forward.bitsFlipped;
      totals.resets += forward.resets;
    }
    return totals;
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.map(async ({ proxy }) => proxy.close()));
  }
}
