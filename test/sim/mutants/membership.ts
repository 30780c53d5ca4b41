/** Mutants: changes of members: which nodes are admitted, and what becomes of removed replicas. */
import { changedLoads } from './seams.ts';
import type { Mutant } from './mutant.ts';

export const MEMBERSHIP: readonly Mutant[] = [
  {
    id: 'M13',
    bug: 'a change of voters takes effect at once, on the leader first and in one step',
    edits: [
      { in: 'changedConfig', find: 'outgoing: votersChange ? config.voters : [],', replace: 'outgoing: [],' },
      { in: 'isSuccessor', find: 'if (after.epoch < before.epoch) return false;', replace: 'return true;' },
      {
        in: 'appendConfig',
        find: 'leadership.pendingConfigIndex = entry.index;',
        replace: 'leadership.pendingConfigIndex = entry.index; state.config = config;',
      },
    ],
  },
  {
    id: 'M13b',
    bug: 'during a change the old voters are ignored',
    edits: [{ in: 'jointQuorumIndex', find: 'return joint.outgoing.length === 0', replace: 'return true ' }],
  },
  {
    id: 'M19',
    bug: 'the tombstone of a removed replica forgets the term',
    seams: changedLoads((stored) =>
      stored.removed ? { ...stored, hardState: { term: 0, vote: 0, commit: 0 } } : stored,
    ),
    script: 'node-comes-and-goes',
  },
  {
    id: 'M20',
    bug: 'a replica that was removed and came back votes at once',
    edits: [
      {
        in: 'hasForgotten',
        find: 'return state.removedAt > 0 && newestEpoch(state) <= state.removedAt;',
        replace: 'return false;',
      },
    ],
    unitTest: {
      file: 'raft/coming-back.test.ts',
      why: 'a leader must be lost while a replica that came back knows no newer configuration than the one that removed it, but its first append brings one',
    },
  },
  {
    id: 'I1',
    bug: 'a node with a known id but another incarnation is not refused',
    faults: ['restoreDirectory', 'makeAnew', 'loseDirectory'],
    edits: [
      {
        in: 'Admission.trustIn',
        find: "return recorded === incarnation ? 'recorded' : 'refused';",
        replace: "return 'recorded';",
      },
      {
        in: 'Admission.refusalOf',
        find: 'if ((hello.targetIncarnation ?? incarnation) !== incarnation) {',
        replace: 'if (false) {',
      },
    ],
  },
  {
    id: 'I2',
    bug: 'a node takes the nodes in its local file for the founders',
    edits: [
      {
        in: 'NodeCore.constructor',
        find: 'this.#founders = config.founders.map(',
        replace: 'this.#founders = config.nodes.map(',
      },
    ],
  },
  {
    id: 'I3',
    bug: 'a node that joins takes itself for a founder',
    edits: [
      {
        in: 'NodeCore.constructor',
        find: 'this.#founders = config.founders.map(({ id }) => id);',
        replace: 'this.#founders = [...new Set([...config.founders.map(({ id }) => id), init.nodeId])];',
      },
    ],
  },
  {
    id: 'I4',
    bug: 'a replica is deleted without checking when it was offered or what its log says',
    edits: [
      {
        in: 'ReplicaKeeper.#seeItGone',
        find: 'if (!isSettled || wasOffered || raft.newestEpoch(group) > version)',
        replace: 'if (!isSettled)',
      },
    ],
  },
  {
    id: 'I5',
    bug: 'a replica is deleted before all partitions have moved',
    edits: [
      {
        in: 'ReplicaKeeper.#seeItGone',
        find: 'const isSettled = settledVersion === version;',
        replace: 'const isSettled = true;',
      },
    ],
  },
  {
    id: 'I6',
    bug: 'a tombstone is ignored when the node starts',
    edits: [
      {
        in: 'Replicas.load',
        find: 'const stored = await store.load(group);',
        replace: 'let stored = await store.load(group); if (stored?.removed) stored = undefined;',
      },
    ],
  },
  {
    id: 'G1',
    bug: 'a learner that is far behind becomes a voter',
    law: 'a change does not cost the group its quorum',
    edits: [
      { in: 'proposeChange', find: "if (!change.every(isCaughtUp)) return 'learnerBehind';", replace: '' },
    ],
  },
  {
    id: 'G2',
    bug: 'a change of voters may leave a group without a reachable quorum',
    law: 'a change does not cost the group its quorum',
    edits: [
      {
        in: 'proposeChange',
        find: "if (!isQuorum(next, (node) => leadership.isReachable(node))) return 'wouldLoseQuorum';",
        replace: '',
      },
    ],
    unitTest: {
      file: 'raft/membership-refused.test.ts',
      why: 'promoted nodes are reachable, and no world has fewer nodes than replicas: a node that leaves is replaced by one that is there, so a quorum stays',
    },
  },
  {
    id: 'G3',
    bug: 'a leader that was removed goes on leading',
    law: 'only members lead; partitions move to where they should be',
    edits: [
      {
        in: 'stepDownIfRemoved',
        find: 'const { leadership } = state;',
        replace: 'const leadership = undefined;',
      },
    ],
  },
  {
    id: 'G4',
    bug: 'a group counts as settled when it has the wanted members, even those of an older placement',
    law: 'no replica is deleted before all partitions have moved',
    edits: [{ in: 'GroupMover.#check', find: 'config.epoch === state.version', replace: 'true' }],
  },
  {
    id: 'G5',
    bug: 'a node offers its replica before the offer is on disk',
    law: 'no offered replica is deleted',
    edits: [{ in: 'ReplicaKeeper.#hold', find: 'this.#durable.get(partition) === version', replace: 'true' }],
    unitTest: {
      file: 'meta/replica-keeper.test.ts',
      why: 'a crash must fall between an offer and the disk write before it, and the offer be accepted meanwhile, but the report travels through the meta group, which takes longer than the write',
    },
  },
  {
    id: 'G6',
    bug: 'a report about an older placement marks the newest one as settled',
    law: 'no replica is deleted before all partitions have moved',
    edits: [
      {
        in: 'applyMetaCommand',
        find: 'record?.state.version === command.version',
        replace: 'record !== undefined',
      },
    ],
    unitTest: {
      file: 'meta/meta-state.test.ts',
      why: 'one world in hundreds shows it: a report about an older version must arrive when the newer one is in the log and not complete',
    },
  },
  {
    id: 'G7',
    bug: 'the id of a removed node can be used again',
    law: 'a removed id does not come back',
    edits: [
      {
        in: 'changedNodes',
        find: 'add.id === remove || state.retired.includes(add.id)',
        replace: 'add.id === remove',
      },
    ],
  },
  {
    id: 'G8',
    bug: 'a node that left is still waited for after everything has moved',
    law: 'a removed node learns that it is out',
    edits: [{ in: 'settled', find: 'leaving: []', replace: 'leaving: state.leaving' }],
  },
  {
    id: 'G9',
    bug: 'promises of an incarnation that is not recorded count',
    law: 'a node with a new database promises nothing',
    edits: [
      {
        in: 'Admission.mayTake',
        find: 'message.group === META_GROUP && !isPromise(message)',
        replace: 'true',
      },
    ],
    unitTest: {
      file: 'meta/admission.test.ts',
      why: 'a node that is not recorded is a member of no group, and its promises count nowhere',
    },
  },
  {
    id: 'G10',
    bug: 'another incarnation can take the place of the recorded one',
    law: 'a node with a new database promises nothing',
    edits: [
      {
        in: 'reportsMore',
        find: 'if (known.incarnation !== undefined && known.incarnation !== node.incarnation) return false;',
        replace: '',
      },
      {
        in: 'reportsMore',
        find: '|| known.incarnation === undefined',
        replace: '|| known.incarnation !== node.incarnation',
      },
    ],
    unitTest: {
      file: 'meta/introductions.test.ts',
      why: 'an incarnation that is not the recorded one is refused when it connects, and introduces itself to nobody',
    },
  },
  {
    id: 'G11',
    bug: 'a replica that came back votes with the configuration that removed it',
    law: 'a replica that forgot its promises does not vote',
    edits: [
      {
        in: 'hasForgotten',
        find: 'newestEpoch(state) <= state.removedAt',
        replace: 'newestEpoch(state) < state.removedAt',
      },
    ],
    unitTest: {
      file: 'raft/coming-back.test.ts',
      why: 'its log must hold no other configuration, and its vote be requested before the next append brings a newer one',
    },
  },
  {
    id: 'G12',
    bug: 'a removal considers only the configuration in effect, not newer ones in the log',
    law: 'no replica is deleted that its group counts on',
    edits: [
      {
        in: 'newestEpoch',
        find: 'newest = Math.max(newest, decodeConfig(entry.data)?.epoch ?? 0);',
        replace: 'decodeConfig(entry.data);',
      },
    ],
    unitTest: {
      file: 'raft/removal.test.ts',
      why: 'the removal must reach a replica that has written a newer configuration and not applied it, which lasts only as long as one commit',
    },
  },
  {
    id: 'G13',
    bug: 'the old voters are released before the new ones know that they decide alone',
    law: 'a quorum makes progress after removed nodes are gone',
    edits: [
      { in: 'leadUnderNewConfig', find: 'if (isComplete) appendNoop(state, leadership);', replace: '' },
    ],
    unitTest: {
      file: 'raft/membership.test.ts',
      why: 'a leader must die between its last write and its next message, and an operator switch off a removed node at that moment; a cluster does not report a change as done so early',
    },
  },
  {
    id: 'G14',
    bug: 'a node that leaves and never was in group 0 does not hear of nodes that join',
    law: 'all groups come to where they should be',
    edits: [{ in: 'GroupMover.#wantedOf', find: '|| ready.mayEnter(node)', replace: '' }],
    unitTest: {
      file: 'meta/moving.test.ts',
      why: 'a founder must be removed before group 0 includes it, and then lead a group in the middle of its move: 2 of thousands of seeds did',
    },
  },
  {
    id: 'G15',
    bug: 'a joint configuration is left only when something is applied',
    law: 'a change that was begun is completed',
    edits: [
      {
        in: 'RaftCore.tick',
        find: 'else tickLeader(state, state.leadership); leaveJointIfDue(state);',
        replace: 'else tickLeader(state, state.leadership);',
      },
    ],
    unitTest: {
      file: 'raft/membership-interrupted.test.ts',
      why: 'it must be applied in the moment of a hand-over that fails, in a group that gets no requests afterwards',
    },
  },
  {
    id: 'G16',
    bug: 'a leader of group 0 that loses leadership keeps waiting for its proposals',
    law: 'a change is answered once; the cluster is created whichever node leads first',
    edits: [{ in: 'MetaGroup.statusChanged', find: 'this.#inflight.clear();', replace: '' }],
    unitTest: {
      file: 'meta/meta-group.test.ts',
      why: 'the next entry applied at that index ends the wait, and a second answer goes to a caller that has stopped waiting; for the cluster never to be created, its first leader must lose that entry and lead again before it has applied the entry that replaced it',
    },
  },
  {
    id: 'M26',
    bug: 'a request that waits for an entry of a removed replica waits until its deadline',
    law: 'no reservation made in vain stays charged',
    edits: [
      {
        in: 'Partition.dropped',
        find: "this.#waiters.answerProposed(unavailable('unknown_outcome', true));",
        replace: '',
      },
    ],
    unitTest: {
      file: 'partition/leadership.test.ts',
      why: 'the leader must have an entry under way when its replica is removed, and the request must have time left when all is healed: one seed in thousands',
    },
  },
];
