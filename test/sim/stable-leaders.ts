/** Finds the nodes that have led a partition alone for a while, by polling. */
import type { GroupId, NodeId } from '../../raft/types.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';

interface StableLeadersInit {
  readonly settings: Settings;
  readonly nodes: () => readonly SimNode[];
  readonly now: () => number;
}

export class StableLeaders {
  readonly #init: StableLeadersInit;
  readonly #stableMillis: number;
  readonly #leaders = new Map<
    GroupId,
    { readonly node: NodeId; readonly term: number; readonly since: number }
  >();

  /** @param stableMillis the minimum time that a reported node has led */
  constructor(init: StableLeadersInit, stableMillis: number) {
    this.#init = init;
    this.#stableMillis = stableMillis;
  }

  /** Reports the leader of each partition that has had it for long enough. */
  each(report: (partition: number, leader: SimNode) => void): void {
    const { settings, nodes } = this.#init;
    for (let partition = 0; partition < settings.config.partitions; partition += 1) {
      const group = groupOfPartition(partition);
      const leads = ({ core }: SimNode): boolean => core?.raft.status(group)?.role === 'leader';
      const leaders = nodes().filter((node) => node.isRunning && leads(node));
      const [leader] = leaders;
      if (leader !== undefined && leaders.length === 1 && this.#isStable(group, leader))
        report(partition, leader);
    }
  }

  #isStable(group: GroupId, leader: SimNode): boolean {
    const term = leader.core?.raft.status(group)?.term ?? 0;
    const known = this.#leaders.get(group);
    const now = this.#init.now();
    if (known?.node === leader.id && known.term === term) return now - known.since >= this.#stableMillis;
    this.#leaders.set(group, { node: leader.id, term, since: now });
    return false;
  }
}
