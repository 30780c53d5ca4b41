/** Mutants: changes of members, who is admitted, and what becomes of those that are not. */
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
    bug: 'during a change the old voters do not count',
    edits: [{ in: 'jointQuorumIndex', find: 'return joint.outgoing.length === 0', replace: 'return true ' }],
  },
  {
    id: 'M19',
    bug: 'the tombstone of a removed replica forgets its term',
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
      why: 'a leader must be lost while the newest configuration of a replica that came back is the one that removed it: it hears of another with its first append',
    },
  },
  {
    id: 'I1',
    bug: 'another incarnation under a known id is not refused',
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
    bug: 'the founders are those that the local file lists',
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
    bug: 'a replica is deleted whatever it was offered under, and whatever its log says',
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
    bug: 'a change may leave a group without a quorum that is there',
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
      why: 'who is promoted is reachable, and no world has fewer nodes than replicas: who goes is replaced by somebody who is there, and a quorum stays one',
    },
  },
  {
    id: 'G3',
    bug: 'a leader that was removed goes on leading',
    law: 'nobody leads that is no member; partitions move to where they should be',
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
    bug: 'a group is settled when its members are those wanted, under whatever placement',
    law: 'no replica is deleted before all partitions have moved',
    edits: [{ in: 'GroupMover.#peek', find: 'config.epoch === state.version', replace: 'true' }],
  },
  {
    id: 'G5',
    bug: 'a node offers itself before that is on its disk',
    law: 'no replica is deleted that was offered',
    edits: [{ in: 'ReplicaKeeper.#hold', find: 'this.#durable.get(partition) === version', replace: 'true' }],
    unitTest: {
      file: 'meta/replica-keeper.test.ts',
      why: 'a crash must fall between an offer and the disk write before it, and the offer be taken up meanwhile: the report travels by the meta group, which takes longer than the write',
    },
  },
  {
    id: 'G6',
    bug: 'a report of an older placement settles the newest',
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
      why: 'one world in hundreds shows it: a report of an older version must arrive when the newer one is in the log and not complete',
    },
  },
  {
    id: 'G7',
    bug: 'the id of a removed node is given away again',
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
    bug: 'who left is waited for though all has moved',
    law: 'a removed node knows that it is out',
    edits: [{ in: 'settled', find: 'leaving: []', replace: 'leaving: state.leaving' }],
  },
  {
    id: 'G9',
    bug: 'promises of an incarnation that is not recorded count',
    law: 'who was made anew promises nothing',
    edits: [
      {
        in: 'Admission.mayTake',
        find: 'message.group === META_GROUP && !isPromise(message)',
        replace: 'true',
      },
    ],
    unitTest: {
      file: 'meta/admission.test.ts',
      why: 'who is not recorded is a member of nothing, and nothing counts what it promises',
    },
  },
  {
    id: 'G10',
    bug: 'another incarnation takes the place of the recorded one',
    law: 'who was made anew promises nothing',
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
      why: 'another incarnation than the recorded one is refused at the door, and introduces itself to nobody',
    },
  },
  {
    id: 'G11',
    bug: 'a replica that came back votes with the configuration that removed it',
    law: 'who has forgotten does not vote',
    edits: [
      {
        in: 'hasForgotten',
        find: 'newestEpoch(state) <= state.removedAt',
        replace: 'newestEpoch(state) < state.removedAt',
      },
    ],
    unitTest: {
      file: 'raft/coming-back.test.ts',
      why: 'it must be the only configuration its log holds, and its vote be asked for before the next append tells it of a newer one',
    },
  },
  {
    id: 'G12',
    bug: 'of configurations in the log only the one in effect counts for a removal',
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
      why: 'the removal must reach a replica that has written a newer configuration and not applied it, which lasts as long as one commit',
    },
  },
  {
    id: 'G13',
    bug: 'the old voters are let go before the new ones know that they decide alone',
    law: 'a quorum makes progress when who left is gone',
    edits: [
      { in: 'leadUnderNewConfig', find: 'if (isComplete) appendNoop(state, leadership);', replace: '' },
    ],
    unitTest: {
      file: 'raft/membership.test.ts',
      why: 'it takes a leader that dies between its last write and its next word, and an operator who at that moment switches off who left: a cluster tells nobody so early that a change is done',
    },
  },
  {
    id: 'G14',
    bug: 'who leaves and never was in group 0 hears of nobody who comes',
    law: 'all groups come to where they should be',
    edits: [{ in: 'GroupMover.#wantedOf', find: '|| ready.mayEnter(node)', replace: '' }],
    unitTest: {
      file: 'meta/moving.test.ts',
      why: 'a founder must be removed before group 0 has it, and then take over a group in the middle of its move: 2 of thousands of seeds did',
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
      why: 'it must be applied in the moment of a hand-over that fails, in a group that nobody asks for anything afterwards',
    },
  },
  {
    id: 'G16',
    bug: 'a leader of group 0 that loses the lead still waits for what it had proposed',
    law: 'who asks for a change is answered once; the cluster is created whoever leads first',
    edits: [{ in: 'MetaGroup.statusChanged', find: 'this.#inflight.clear();', replace: '' }],
    unitTest: {
      file: 'meta/meta-group.test.ts',
      why: 'what is applied at that index ends it soon, and a second answer goes to somebody who has stopped waiting; for the cluster never to be created its first leader must lose that entry and lead again before it has applied what replaced it',
    },
  },
  {
    id: 'M26',
    bug: 'who waits for an entry of a replica that is removed waits until his deadline',
    law: 'nothing that was reserved in vain stays charged',
    edits: [
      {
        in: 'Partition.dropped',
        find: "this.#waiters.answerProposed(unavailable('unknown_outcome', true));",
        replace: '',
      },
    ],
    unitTest: {
      file: 'partition/leadership.test.ts',
      why: 'the leader must have an entry under way when its replica is taken away, and the request time left when all is healed: a seed in thousands',
    },
  },
];
