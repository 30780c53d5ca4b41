/** Mutants: between the log and those who wait for it: the driver of the groups, and the partition. */
import type { Mutant } from './mutant.ts';

export const DRIVER: readonly Mutant[] = [
  {
    id: 'D8',
    bug: 'the disk is never found to answer again',
    faults: ['slowDisk', 'diskError'],
    law: 'a quorum makes progress',
    edits: [
      { in: 'GroupCommit.#written', find: 'if (this.#isStalled) this.#setStalled(false);', replace: '' },
    ],
  },
  {
    id: 'D9',
    bug: 'what waits for a hand-over to end is forgotten',
    law: 'in health every request is decided',
    edits: [
      {
        in: 'TurnLoop.#propose',
        find: "if (group.core.role === 'leader' && !group.core.acceptsProposals) continue; this.#wantsProposal.delete(group);",
        replace:
          "this.#wantsProposal.delete(group); if (group.core.role === 'leader' && !group.core.acceptsProposals) continue;",
      },
    ],
    unitTest: {
      file: 'raft/driver/hand-over.test.ts',
      why: 'hand-overs mostly succeed, and whatever is asked next has the rest proposed with it',
    },
  },
  {
    id: 'D10',
    bug: 'the same leader in a newer term is no news',
    law: 'a quorum makes progress',
    edits: [{ in: 'isReported', find: 'reported.term === core.term &&', replace: '' }],
    unitTest: {
      file: 'raft/driver/failover.test.ts',
      why: 'whoever is sent to the leader of an older term finds the same leader there, or asks once more; no law counts single questions',
    },
  },
  {
    id: 'D11',
    bug: 'a leader decides before it has applied what former leaders decided',
    law: 'no wrong denial; a retry gets its first answer',
    edits: [
      {
        in: 'Partition.decide',
        find: 'if (!this.#canDecide)',
        replace: 'if (this.#machine.ruleTable === undefined)',
      },
    ],
  },
  {
    id: 'D11b',
    bug: 'a leader answers a look before it has applied what former leaders decided',
    law: 'a look tells what follows from the log of a leader in office',
    // Either check alone keeps the law.
    edits: [
      {
        in: 'Partition.decide',
        find: 'if (!this.#canDecide)',
        replace: "if (!this.#canDecide && request.ask !== 'peek')",
      },
      { in: 'startRound', find: '|| log.termAt(log.committed) !== state.term', replace: '' },
    ],
  },
  {
    id: 'D12',
    bug: 'what waits behind a committed entry of the same term is given up as lost',
    law: 'nothing is in the log that was said to be nowhere',
    edits: [{ in: 'Waiters.answerOverruled', find: 'term < committed', replace: 'term <= committed' }],
    unitTest: {
      file: 'partition/leadership.test.ts',
      why: 'a leader of a term has all its entries and needs no snapshot of that term, and it proposes only after the first of them is applied: nothing of that term waits when it is looked for',
    },
  },
  {
    id: 'D13',
    bug: 'who loses the lead gives up what is in the log',
    law: 'nothing is in the log that was said to be nowhere',
    edits: [
      {
        in: 'Partition.statusChanged',
        find: 'this.#waiters.answerPending({',
        replace:
          "this.#waiters.answerProposed(unavailable('no_leader', false)); this.#waiters.answerPending({",
      },
    ],
  },
  {
    id: 'D14',
    bug: 'a leader restored from a snapshot says that what it had proposed is nowhere',
    law: 'nothing is in the log that was said to be nowhere',
    world: 'far-behind',
    features: ['ids', 'repeats'],
    edits: [
      {
        in: 'Partition.restore',
        find: "this.#waiters.answerProposed(unavailable('unknown_outcome', true));",
        replace: "this.#waiters.answerProposed(unavailable('no_leader', false));",
      },
    ],
  },
  {
    id: 'H4',
    bug: 'what a leader proposed is reported as lost when it loses the office, though another may commit it',
    law: 'who is told that its request is nowhere is never charged',
    edits: [
      {
        in: 'Partition.statusChanged',
        find: 'leader: status.leader, term: status.term });',
        replace:
          "leader: status.leader, term: status.term }); this.#waiters.answerProposed(unavailable('no_leader', false));",
      },
    ],
  },
  {
    id: 'H6',
    bug: 'who asks again while an entry is applied is denied from half of it',
    law: 'every decision is that of the naive limiter',
    edits: [
      {
        in: 'Partition.#applyOurs',
        find: 'decisions.push(decision)',
        replace:
          '{ const reported = waiters[decisions.push(decision) - 1]; if (reported !== undefined) { this.#waiters.answer(reported, answerOf(decision, reported.request.requestId)); reported.done = () => {}; } }',
      },
    ],
  },
  {
    id: 'D31',
    bug: 'a group with entries to apply is taken to be at rest',
    law: 'in health every request is decided',
    edits: [{ in: 'RaftCore.isAtRest', find: 'log.applied >= log.committed &&', replace: '' }],
  },
  {
    id: 'D32',
    bug: 'a group whose votes and acknowledgements wait for the disk is taken to be at rest',
    law: 'a quorum makes progress',
    edits: [{ in: 'RaftCore.isAtRest', find: 'afterSync.length === 0 &&', replace: '' }],
  },
  {
    id: 'D33',
    bug: 'a group whose leader changed is taken to be at rest',
    law: 'whoever asks finds the leader',
    edits: [
      {
        in: 'TurnLoop.settle',
        find: 'group.core.isAtRest && isReported(group)',
        replace: 'group.core.isAtRest',
      },
    ],
    unitTest: {
      file: 'raft/driver/reads.test.ts',
      why: 'the first entry of every leader brings its followers up to date, and one that steps down is asked by nobody for long',
    },
  },
  {
    id: 'D53',
    bug: 'when all that operators wanted has expired, nobody asks for the place of those who wait behind them',
    edits: [
      {
        in: 'Partition.takeProposal',
        find: 'if (data === undefined) this.#maybeProposeMore();',
        replace: '',
      },
    ],
    unitTest: {
      file: 'partition/customers.test.ts',
      why: 'the next request asks for a place, and clients of a world never stop asking',
    },
  },
  {
    id: 'D54',
    bug: 'rules that the log has no room for are proposed again at once, and again, and nothing else happens',
    edits: [
      {
        in: 'Partition.proposed',
        find: 'if (!this.#own.waitsForRoom) this.#maybeProposeMore();',
        replace: 'this.#maybeProposeMore();',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'a world in which that happens never ends, and so tells nothing',
    },
  },
  {
    id: 'D40',
    bug: 'a leader that has proposed rules in its term never proposes others',
    law: 'rules that group 0 holds reach every partition',
    edits: [
      {
        in: 'OwnProposals.rulesAhead',
        find: 'this.#proposedRules.term === term ? this.#proposedRules.version : 0',
        replace: 'this.#proposedRules.term === term ? Infinity : 0',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'in a world of a few seconds leaders change so often that the next one proposes them',
    },
  },
  {
    id: 'D41',
    bug: 'who is told that the rules are changed is told so before every partition decides by them',
    law: 'from when a change of the rules is answered nothing is granted by those before',
    edits: [
      {
        in: 'RulesChanges.#pendingAt',
        find: '< table.version',
        replace: '< table.version - 1',
      },
    ],
    unitTest: { file: 'node/rules-changes.test.ts', why: 'the clients of the simulator do not wait for it' },
  },
  {
    id: 'D42',
    bug: 'rules that were made for others than those in force replace them',
    law: 'a change of the rules replaces what was read',
    edits: [{ in: 'changedRules', find: 'base !== current ||', replace: '' }],
    unitTest: {
      file: 'meta/meta-state.test.ts',
      why: 'the operator of the simulator makes one change at a time',
    },
  },
  {
    id: 'D52',
    bug: 'when a write ends, offers that came meanwhile are said to be on disk, too, and are never written',
    law: 'no replica is deleted that was offered',
    edits: [
      {
        in: 'GroupCommit.#release',
        find: 'group.offers.splice(0, offers)',
        replace: 'group.offers.splice(0)',
      },
    ],
    unitTest: {
      file: 'raft/driver/group-commit.test.ts',
      why: 'the group itself must be in a write while it is offered, and its node must crash before it is a voter and come back with an older version that it takes for settled',
    },
  },
  {
    id: 'E1',
    bug: 'the answer of a node counts for a group that does not rest there, in whatever term that is',
    law: 'a leader that its group has left steps down',
    edits: [{ in: 'FollowedRests.wake', find: 'leader.awake.add(group.id);', replace: '' }],
    unitTest: {
      file: 'raft/driver/rests.test.ts',
      why: 'whoever asks such a leader for something wakes the group, and in the simulator somebody always does',
    },
  },
  {
    id: 'E2',
    bug: 'a follower that rested goes by its own clock since it came to rest',
    law: 'group time follows the clock of its leader',
    edits: [
      {
        in: 'CoreRest.endAsFollower',
        find: 'state.observeLeaderTime(state.term, timeMillis, ageMillis);',
        replace: '',
      },
    ],
    unitTest: {
      file: 'raft/driver/rests.test.ts',
      why: 'groups of the simulator rest for too short a time for a clock to gain what a law would notice',
    },
  },
  {
    id: 'E3',
    bug: 'group time follows the clock of another process of the leader',
    law: 'group time never outruns real time',
    edits: [
      {
        in: 'FollowedRests.isOfAnotherProcess',
        find: 'leader !== undefined && leader.process !== process',
        replace: 'false',
      },
    ],
    unitTest: {
      file: 'raft/driver/rests.test.ts',
      why: 'a connection breaks with its process, and that wakes the groups before beats of the next come',
    },
  },
  {
    id: 'E4',
    bug: 'the answer of a node counts also for the groups that it names as not resting there',
    law: 'a leader that its group has left is gone two election timeouts after a quorum followed it last',
    edits: [
      {
        in: 'Rests.receiveAnswer',
        find: 'for (const group of this.#led.awakeAt(answer)) this.busy(group); this.#led.answered(answer);',
        replace:
          'this.#led.answered(answer); for (const group of this.#led.awakeAt(answer)) this.busy(group);',
      },
    ],
    unitTest: {
      file: 'raft/driver/rests-faults.test.ts',
      why: 'what a deposed leader tells in two more heartbeat intervals breaks no law',
    },
  },
  {
    id: 'E5',
    bug: 'a beat with another list is a heartbeat also in the groups that are not on it any more',
    law: 'followers wait for no leader that has left',
    edits: [
      {
        in: 'FollowedRests.receive',
        find: 'const leader = this.#leaders.get(from) ?? this.#meet(beat);',
        replace:
          'const leader = this.#leaders.get(from) ?? this.#meet(beat); if (groups !== undefined) leader.heardTick = this.#ticks;',
      },
    ],
    unitTest: {
      file: 'raft/driver/rests-faults.test.ts',
      why: 'in the simulator nobody is late by less than an election timeout',
    },
  },
  {
    id: 'E6',
    bug: 'a follower that woke rests again with the next list, and its leader hears nothing of that',
    law: 'a leader knows which of its followers would lead',
    edits: [{ in: 'FollowedRests.#agrees', find: 'unreported.has(group)', replace: 'false' }],
    unitTest: {
      file: 'raft/driver/rests-faults.test.ts',
      why: 'nobody is drained in the simulator',
    },
  },
  {
    id: 'E7',
    bug: 'a follower rests that has the last entry and does not know that it is committed',
    law: 'a group at rest is applied everywhere',
    edits: [
      {
        in: 'CoreRest.agreesTo',
        find: 'return last.index === index && last.term === term && committed === index;',
        replace: 'return last.index === index && last.term === term;',
      },
    ],
    unitTest: {
      file: 'raft/driver/rests.test.ts',
      why: 'all heartbeats of two election timeouts must be lost but for one that is older than the commit, and a beat must arrive',
    },
  },
];
