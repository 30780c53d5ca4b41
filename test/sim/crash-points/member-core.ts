/**
 * A node whose groups may change members: the driver and the one partition of a small group, without a router. It
 * decides what it is asked if it leads, and otherwise says that it cannot.
 */
import { RAFT_DEFAULTS } from '../../../raft/core-state.ts';
import { MULTI_RAFT_DEFAULTS, MultiRaft } from '../../../raft/driver/multi-raft.ts';
import { NO_NODE, type NodeId, type StoredGroup } from '../../../raft/types.ts';
import { ticksOf } from '../../../src/config/config.ts';
import { restoreGroup } from '../../../src/node/group-loader.ts';
import { GroupClock } from '../../../raft/driver/group-clock.ts';
import type { NodeCoreInit } from '../../../src/node/node-core-init.ts';
import { Partition, PARTITION_DEFAULTS } from '../../../src/partition/partition.ts';
import { groupOfPartition } from '../../../src/partition/placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../../src/wire/peer-messages.ts';
import type { NodeProcess, ReplicaControl } from '../node-world.ts';

export const PARTITION = 0;
export const GROUP = groupOfPartition(PARTITION);

/** @param founders the voters the group began with; any other node joins it later */
export async function loadMember(init: NodeCoreInit, founders: readonly NodeId[]): Promise<NodeProcess> {
  const { nodeId, config, clocks } = init;
  const { timing } = config;
  const raft = new MultiRaft({
    id: nodeId,
    store: init.store,
    random: init.random,
    options: {
      ...MULTI_RAFT_DEFAULTS,
      raft: {
        ...RAFT_DEFAULTS,
        ...ticksOf(timing),
      },
      ...init.raft,
    },
    defer: init.defer,
    send(to, messages) {
      for (const payload of encodePeerMessages(messages)) init.send(to, 'peerMessages', payload);
    },
    fatal: init.fatal,
  });
  const stored = await init.store.load(GROUP);
  const member = new Member(init, raft, founders);
  await member.load(stored);
  raft.start();
  return {
    raft,
    partitions: member.partitions,
    replica: member,
    allow(request, done) {
      const deadline = clocks.monotonicMillis() + timing.requestDeadlineMillis;
      const app = member.partitions.get(PARTITION);
      if (app === undefined) {
        done({ kind: 'unavailable', reason: 'no_leader', proposed: false }, PARTITION);
        return;
      }
      app.decide(request, deadline, (answer) => {
        const isElsewhere = answer.kind === 'notLeader';
        done(isElsewhere ? { kind: 'unavailable', reason: 'no_leader', proposed: false } : answer, PARTITION);
      });
    },
    tick: () => raft.tick(),
    receive(from, type, payload) {
      if (type === 'peerMessages') raft.receive(decodePeerMessages(payload, from.node, nodeId));
    },
    peerLost: (peer) => raft.peerLost(peer),
    peerDisconnected() {},
  };
}

/** The replica of the one group on this node: there, or removed, or back again. */
class Member implements ReplicaControl {
  readonly partitions = new Map<number, Partition>();
  state: ReplicaControl['state'];
  #tombstone: StoredGroup | undefined;
  readonly #init: NodeCoreInit;
  readonly #raft: MultiRaft;
  readonly #founders: readonly NodeId[];

  constructor(init: NodeCoreInit, raft: MultiRaft, founders: readonly NodeId[]) {
    this.#init = init;
    this.#raft = raft;
    this.#founders = founders;
  }

  async load(stored: StoredGroup | undefined): Promise<void> {
    if (stored?.removed === true) {
      this.#removed(stored);
      return;
    }
    const app = this.#newPartition();
    if (stored !== undefined) await restoreGroup(this.#init.store, GROUP, stored, app);
    this.#hold(app, stored, undefined);
    this.state = 'held';
  }

  #removed(tombstone: StoredGroup): void {
    this.#tombstone = tombstone;
    this.state = 'removed';
  }

  remove(placement: number): void {
    if (this.state !== 'held') return;
    this.state = undefined;
    this.partitions.delete(PARTITION);
    this.#raft.removeGroup(GROUP, placement, (tombstone) => this.#removed(tombstone));
  }

  comeBack(placement: number): void {
    if (this.state !== 'removed') return;
    this.state = undefined;
    this.#hold(this.#newPartition(), this.#tombstone, placement);
    this.#raft.offerGroup(GROUP, placement, () => {
      this.state = 'held';
    });
  }

  #newPartition(): Partition {
    const { nodeId, config, clocks, leaderChanged } = this.#init;
    return new Partition({
      partition: PARTITION,
      nodeId,
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      options: PARTITION_DEFAULTS,
      monotonicMillis: clocks.monotonicMillis,
      wallMillis: clocks.wallMillis,
      ruleTable: config.rules,
      requestProposal: () => this.#raft.requestProposal(GROUP),
      leaderChanged,
    });
  }

  #hold(app: Partition, stored: StoredGroup | undefined, placement: number | undefined): void {
    const founders = this.#founders;
    this.partitions.set(PARTITION, app);
    this.#raft.addGroup({
      group: GROUP,
      voters: founders.includes(this.#init.nodeId) ? founders : [],
      preferredLeader: founders[0] ?? NO_NODE,
      app,
      stored,
      ...(placement !== undefined && { placement }),
    });
    this.#init.groupAdded?.(GROUP, app, this.#raft.status(GROUP)?.applied ?? 0);
  }
}
