/**
 * How long leaders outside of the healed nodes kept a partition, in a world that leaves no time for asking them.
 *
 * A leader that was not healed, but reaches one of the healed nodes both ways, may have a quorum with it for as long as
 * it likes: it commits, so no other node may depose it. If its paths are slow compared to a deadline and lose frames,
 * neither a request of that follower nor one that it relays comes back in time. A cluster cannot do more, so the healed
 * nodes must serve from the moment they lead. A leader is not excused if it commits nothing, or if no healed voter
 * could hear and answer it: its leadership must end.
 */
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

interface Kept {
  /** The log of the partition was committed up to here at `seenAtMillis`. */
  index: number;
  seenAtMillis: number;
  millis: number;
}

export class OutsideLeaders {
  readonly #world: World;
  readonly #healed: readonly SimNode[];
  readonly #kept = new Map<number, Kept>();

  constructor(world: World, healed: readonly SimNode[]) {
    this.#world = world;
    this.#healed = healed;
  }

  /** Call it often: commits under such a leader since the last call show that it was useful until now. */
  observe(partition: number): void {
    const { now, raft } = this.#world;
    const index = raft.committedIndex(groupOfPartition(partition));
    const before = this.#kept.get(partition) ?? { index, seenAtMillis: now, millis: 0 };
    const isKept = this.#isLedOutside(partition);
    if (isKept && index === before.index) {
      this.#kept.set(partition, before);
      return;
    }
    const millis = before.millis + (isKept ? now - before.seenAtMillis : 0);
    this.#kept.set(partition, { index, seenAtMillis: now, millis });
  }

  keptMillis(partition: number): number {
    return this.#kept.get(partition)?.millis ?? 0;
  }

  /** The newest leader is outside, and a healed voter can hear and answer it. */
  #isLedOutside(partition: number): boolean {
    const { nodes, network } = this.#world;
    const group = groupOfPartition(partition);
    const [newest] = nodes
      .flatMap((node) => {
        const status = node.core?.raft.status(group);
        return status?.role === 'leader' ? [{ node, status }] : [];
      })
      .sort((a, b) => b.status.term - a.status.term);
    if (newest === undefined || !newest.node.isRunning || this.#healed.includes(newest.node)) return false;
    const { id } = newest.node;
    const { voters, outgoing } = newest.status.config;
    return this.#healed.some(
      (node) =>
        (voters.includes(node.id) || outgoing.includes(node.id)) &&
        !network.isCut(id, node.id) &&
        !network.isCut(node.id, id),
    );
  }
}

/** A deadline leaves enough time for a relayed request, and for finding out that it needs a relay. */
export function isRoomy({ network, disk, timing }: Settings): boolean {
  const hop =
    network.slowMillis * Math.sign(network.slowFraction) + network.delayMinMillis + network.delayMeanMillis;
  return 6 * hop + 2 * disk.syncMeanMillis < timing.requestDeadlineMillis / 2;
}
