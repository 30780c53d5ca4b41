/** A group that has moved to other nodes, and one old node that does not know it. */
import { decodeConfig } from '../../raft/membership.ts';
import type { NodeId } from '../../raft/types.ts';
import { Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { messageOf, type Parcel } from './driver/parcel.ts';

/** Moves the group from `leaving` to as many new nodes, for placement `epoch`. */
export async function move(
  cluster: Cluster,
  leaving: readonly NodeId[],
  entering: readonly NodeId[],
  epoch: number,
): Promise<void> {
  for (const id of entering) {
    if (!cluster.nodes.has(id)) cluster.add(id);
    await cluster.changed([{ kind: 'addLearner', node: id }], epoch);
  }
  await cluster.commit(`for ${entering.join(' ')}`, entering);
  await cluster.changed(
    [
      ...entering.map((node) => ({ kind: 'promote', node }) as const),
      ...leaving.map((node) => ({ kind: 'remove', node }) as const),
    ],
    epoch,
  );
}

interface Moved {
  readonly cluster: Cluster;
  /** The old node that knows nothing of the move, or only that it begins. */
  readonly asleep: Node;
  /** The other two of the first three, removed by placement 1. */
  readonly first: Node;
  readonly second: Node;
}

/** Begins to replace voters: its configuration is joint. */
function beginsMove(parcel: Parcel): boolean {
  const message = messageOf(parcel);
  if (message?.type !== 'append') return false;
  const configs = message.entries.filter(({ kind }) => kind === 'config');
  return configs.some(({ data }) => decodeConfig(data)?.outgoing.length !== 0);
}

/**
 * The group of node 1 moves to 2, 3 and 4. One of them sleeps while it moves on to 5, 6 and 7: all the time, or from
 * when it has the entry that begins the move on its disk.
 */
export async function movedAway(sleeps: 'all the time' | 'soon' = 'all the time'): Promise<Moved> {
  const cluster = new Cluster({ voters: 1 });
  await move(cluster, [1], [2, 3, 4], 0);
  cluster.node(1).crash();
  await cluster.commit('a', [2, 3, 4]);
  const leader = await cluster.elect();
  const [second, asleep] = [2, 3, 4].filter((id) => id !== leader.id).map((id) => cluster.node(id));
  const first = leader;
  if (second === undefined || asleep === undefined) throw new Error('three nodes');
  if (sleeps === 'all the time') asleep.crash();
  for (let i = 0; i < 5; i += 1) await cluster.commit(`b${i}`, [first.id, second.id]);
  let isCut = false;
  cluster.passes = (parcel) => {
    if (parcel.to !== asleep.id) return true;
    const isHeard = !isCut;
    isCut ||= beginsMove(parcel);
    return isHeard;
  };
  await move(cluster, [2, 3, 4], [5, 6, 7], 1);
  cluster.heal();
  if (sleeps === 'soon') asleep.crash();
  for (const node of [first, second]) node.remove(1);
  await cluster.settle();
  return { cluster, first, second, asleep };
}
