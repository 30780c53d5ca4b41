/** Mutants: the turns of a driver: rounds of proposals, hand-overs, and reads that come during a turn. */
import type { Mutant } from './mutant.ts';

export const TURNS: readonly Mutant[] = [
  {
    id: 'RN1',
    bug: 'groups propose while an earlier round is still on its way',
    law: 'requests that come during a round go together into the next',
    edits: [{ in: 'Rounds.isOver', find: '!this.#awaited.some(isOnItsWay)', replace: 'true' }],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'more rounds reach the same decisions' },
  },
  {
    id: 'RN2',
    bug: 'a group without a quorum holds up all other groups of its leader',
    law: 'a quorum makes progress',
    edits: [{ in: 'Rounds.tick', find: 'this.#ticks += 1;', replace: '' }],
    unitTest: {
      file: 'raft/driver/rounds.test.ts',
      why: 'a leader without a quorum steps down after a while, and laws allow for that',
    },
  },
  {
    id: 'RN3',
    bug: 'a group without a quorum holds up the others again in every round',
    law: 'a quorum makes progress',
    edits: [{ in: 'Rounds.tick', find: 'this.#late.set(group.id, index);', replace: 'void [group, index];' }],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'no law counts ticks' },
  },
  {
    id: 'RN4',
    bug: 'a group that was late once is never waited for again',
    law: 'requests that come during a round go together into the next',
    edits: [
      {
        in: 'Rounds.proposed',
        find: 'if (group.core.applied < (this.#late.get(group.id) ?? 0)) return;',
        replace: 'if (this.#late.has(group.id)) return;',
      },
    ],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'more rounds reach the same decisions' },
  },
  {
    id: 'RN5',
    bug: 'a group that has left the node is waited for',
    law: 'a quorum makes progress',
    edits: [{ in: 'isOnItsWay', find: '!isRemoved && ', replace: 'isRemoved !== undefined && ' }],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'no law counts ticks' },
  },
  {
    id: 'RN6',
    bug: 'the turn that ends a round forgets the requests that wait for it',
    law: 'in health every request is decided',
    edits: [
      {
        in: 'TurnLoop.#turn',
        find: 'if (isHeld && this.#mayPropose && this.#wantsProposal.size > 0) this.#schedule();',
        replace: '',
      },
    ],
    unitTest: {
      file: 'raft/driver/group-commit.test.ts',
      why: 'the next request, or a tick at the latest, has them proposed',
    },
  },
  {
    id: 'RN7',
    bug: 'a node that recently handed a group over refuses to hand it to any other preferred leader',
    law: 'leaders gather where nothing keeps them from it',
    edits: [
      {
        in: 'MultiRaft.preferLeader',
        find: 'if (node !== target.preferredLeader) target.balanceAtTick = 0;',
        replace: '',
      },
    ],
    unitTest: {
      file: 'raft/driver/hand-over.test.ts',
      why: 'hardly any world hands over so often within ten seconds',
    },
  },
  {
    id: 'D60',
    bug: 'a read that is asked for while a turn answers waits until something else wakes its group',
    law: 'in health every request is decided',
    edits: [
      {
        in: 'TurnLoop.#write',
        find: 'for (const group of groups) if (group.reads.isAsked) this.#active.add(group);',
        replace: '',
      },
    ],
    unitTest: {
      file: 'raft/driver/reads.test.ts',
      why: 'the deadline of the request that waits passes without breaking a law',
    },
  },
];
