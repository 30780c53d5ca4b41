/** Mutants: the driver of the Raft groups, and the partition, whose requests wait for the log. */
import type { Mutant } from './mutant.ts';

export const DRIVER: readonly Mutant[] = [
  {
    id: 'D8',
    bug: 'a disk that stalled is never seen to work again',
    faults: ['slowDisk', 'diskError'],
    law: 'a quorum makes progress',
    edits: [
      { in: 'GroupCommit.#written', find: 'if (this.#isStalled) this.#setStalled(false);', replace: '' },
    ],
  },
  {
    id: 'D9',
    bug: 'requests that wait for a hand-over to end are forgotten',
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
      why: 'most hand-overs succeed, and the next request has the waiting ones proposed with it',
    },
  },
  {
    id: 'D10',
    bug: 'the same leader in a newer term is not reported',
    law: 'a quorum makes progress',
    edits: [{ in: 'isReported', find: 'reported.term === core.term &&', replace: '' }],
    unitTest: {
      file: 'raft/driver/failover.test.ts',
      why: 'a request sent to the leader of an older term finds the same leader there, or is sent once more; no law counts single requests',
    },
  },
  {
    id: 'D11',
    bug: 'a leader decides before it has applied the entries of former leaders',
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
    bug: 'a leader answers a peek before it has applied the entries of former leaders',
    law: 'a peek shows what follows from the log of the current leader',
    // Each of the two checks is enough to keep the law, so the mutant removes both.
    edits: [
      {
        in: 'Partition.decide',
        find: 'if (!this.#canDecide)',
        replace: "if (!this.#canDecide && request.ask !== 'peek')",
      },
      { in: 'startLeadershipCheck', find: '|| log.termAt(log.committed) !== state.term', replace: '' },
    ],
  },
  {
    id: 'D12',
    bug: 'requests that wait behind a committed entry of the same term are given up as lost',
    law: 'a request reported as nowhere is in no log',
    edits: [{ in: 'Waiters.answerOverruled', find: 'term < committed', replace: 'term <= committed' }],
    unitTest: {
      file: 'partition/leadership.test.ts',
      why: 'a leader has all entries of its term and needs no snapshot of that term, and it proposes only after the first of them is applied: when requests are given up, none of that term waits',
    },
  },
  {
    id: 'D13',
    bug: 'a node that loses leadership gives up requests that are in the log',
    law: 'a request reported as nowhere is in no log',
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
    bug: 'a leader that restores a snapshot reports the requests that it had proposed as nowhere',
    law: 'a request reported as nowhere is in no log',
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
    bug: 'a node that loses leadership reports its proposals as lost, though the next leader may commit them',
    law: 'a request reported as nowhere is never charged',
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
    bug: 'a request that comes while an entry is applied is denied by the half that is applied already',
    law: 'every decision is that of the naive limiter',
    edits: [
      {
        in: 'Partition.#applyOurs',
        find: 'decisions.push(decision)',
        replace:
          '{ const reported = waiters[decisions.push(decision) - 1]; if (reported !== undefined) { this.#waiters.answer(reported, answerTo(reported.request, decision, entry)); reported.done = () => {}; } }',
      },
    ],
  },
  {
    id: 'D31',
    bug: 'a group with entries to apply counts as at rest',
    law: 'in health every request is decided',
    edits: [{ in: 'RaftCore.isAtRest', find: 'log.applied >= log.committed &&', replace: '' }],
  },
  {
    id: 'D32',
    bug: 'a group whose votes and acknowledgements wait for the disk counts as at rest',
    law: 'a quorum makes progress',
    edits: [{ in: 'RaftCore.isAtRest', find: 'afterSync.length === 0 &&', replace: '' }],
  },
  {
    id: 'D33',
    bug: 'a group whose leader changed counts as at rest',
    law: 'a request finds the leader',
    edits: [
      {
        in: 'TurnLoop.settle',
        find: 'group.core.isAtRest && isReported(group)',
        replace: 'group.core.isAtRest',
      },
    ],
    unitTest: {
      file: 'raft/driver/reads.test.ts',
      why: 'the first entry of every leader brings its followers up to date, and a leader that stepped down gets requests only for a short time',
    },
  },
  {
    id: 'D53',
    bug: 'when all waiting changes of operators have expired, the requests behind them are not proposed',
    edits: [
      {
        in: 'Partition.takeProposal',
        find: 'if (data === undefined) this.#maybeProposeMore();',
        replace: '',
      },
    ],
    unitTest: {
      file: 'partition/customers.test.ts',
      why: 'the next request has them proposed, and clients of a world never stop asking',
    },
  },
  {
    id: 'D54',
    bug: 'rules that the log has no room for are proposed again at once, for ever, and nothing else happens',
    edits: [
      {
        in: 'Partition.proposed',
        find: 'if (!this.#own.waitsForRoom) this.#maybeProposeMore();',
        replace: 'this.#maybeProposeMore();',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'a world in which that happens never ends, and so shows nothing',
    },
  },
  {
    id: 'D40',
    bug: 'a leader that has proposed rules in its term never proposes newer ones',
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
    bug: 'a change of the rules is reported as done before every partition decides by the new rules',
    law: 'after a change of the rules is answered, nothing is granted by the old ones',
    edits: [
      {
        in: 'RulesChanges.#pendingAt',
        find: '< table.version',
        replace: '< table.version - 1',
      },
    ],
    unitTest: {
      file: 'node/rules-changes.test.ts',
      why: 'the clients of the simulator do not wait for that answer',
    },
  },
  {
    id: 'D42',
    bug: 'new rules replace rules other than those they were made for',
    law: 'a change of the rules replaces only the version that was read',
    edits: [{ in: 'changedRules', find: 'base !== current ||', replace: '' }],
    unitTest: {
      file: 'meta/meta-state.test.ts',
      why: 'the operator of the simulator makes one change at a time',
    },
  },
  {
    id: 'D52',
    bug: 'when a write ends, offers that came meanwhile are reported as on disk, but are never written',
    law: 'no offered replica is deleted',
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
    bug: 'the answer of a node for its resting groups also counts for a group that woke there in a newer term',
    law: 'a leader that its group has left steps down',
    edits: [{ in: 'FollowedRests.wake', find: 'leader.awake.add(group.id);', replace: '' }],
    unitTest: {
      file: 'raft/driver/rests.test.ts',
      why: 'a request to such a leader wakes the group, and in the simulator there is always one',
    },
  },
  {
    id: 'E2',
    bug: 'after a rest a follower takes group time from its own clock, not from the clock of its leader',
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
    bug: 'a resting follower takes group time from a new process of its leader, which may have another clock',
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
      why: 'a connection breaks with its process, and that wakes the groups before beats of the next process come',
    },
  },
  {
    id: 'E4',
    bug: 'the answer of a node also counts for the groups that it lists as awake',
    law: 'a leader that its group has left steps down two election timeouts after a quorum last followed it',
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
      why: 'what a deposed leader answers during two more heartbeat intervals breaks no law',
    },
  },
  {
    id: 'E5',
    bug: 'a beat with a new list is a heartbeat also in the groups that are no longer on the list',
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
    bug: 'a follower that woke rests again at the next list, and its leader never hears that it woke',
    law: 'a leader knows which of its followers would lead',
    edits: [{ in: 'FollowedRests.#agrees', find: 'unreported.has(group)', replace: 'false' }],
    unitTest: {
      file: 'raft/driver/rests-faults.test.ts',
      why: 'no node is drained in the simulator',
    },
  },
  {
    id: 'E7',
    bug: 'a follower rests when it has the last entry, before it knows that the entry is committed',
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
      why: 'all heartbeats of two election timeouts must be lost except one that is older than the commit, and a beat must arrive',
    },
  },
];
