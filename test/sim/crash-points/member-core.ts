/**
 * A node whose groups may change members: the driver and the one partition of a small group, without a router. It
 * decides what it is asked if it leads, and otherwise says that it cannot.
 */
import { RAFT_DEFAULTS } from '../../../raft/core-state.ts';
import { MULTI_RAFT_DEFAULTS, MultiRaft } from '../../../raft/multi-raft.ts';
import { NO_NODE, type NodeId } from '../../../raft/types.ts';
import { ticksOf } from '../../../src/config.ts';
import { GroupClock } from '../../../src/limiter/group-clock.ts';
import type { NodeCoreInit } from '../../../src/node-core.ts';
import { Partition, PARTITION_DEFAULTS } from '../../../src/partition/partition.ts';
import { groupOfPartition } from '../../../src/partition/placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../../src/transport/peer-codec.ts';
import type { NodeProcess } from '../node-world.ts';

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
  const app = new Partition({
    partition: PARTITION,
    nodeId,
    clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
    options: PARTITION_DEFAULTS,
    monotonicMillis: clocks.monotonicMillis,
    wallMillis: clocks.wallMillis,
    ruleTable: config.rules,
    requestProposal: () => raft.requestProposal(GROUP),
    leaderChanged: init.leaderChanged,
  });
  raft.addGroup({
    group: GROUP,
    voters: founders.includes(nodeId) ? founders : [],
    preferredLeader: founders[0] ?? NO_NODE,
    app,
    stored,
  });
  init.groupAdded?.(GROUP, app, raft.status(GROUP)?.applied ?? 0);
  return {
    raft,
    partitions: new Map([[PARTITION, app]]),
    allow(request, done) {
      const deadline = clocks.monotonicMillis() + timing.requestDeadlineMillis;
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
