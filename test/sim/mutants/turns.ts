/** Mutants: what the turns of a driver do when: rounds of proposals, and hand-overs. */
import type { Mutant } from './mutant.ts';

export const TURNS: readonly Mutant[] = [
  {
    id: 'RN1',
    bug: 'groups propose while an earlier round is on its way',
    law: 'what comes meanwhile shares the next round',
    edits: [{ in: 'Rounds.isOver', find: '!this.#awaited.some(isOnItsWay)', replace: 'true' }],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'more rounds decide the same' },
  },
  {
    id: 'RN2',
    bug: 'a group without a quorum keeps all others of its leader waiting',
    law: 'a quorum makes progress',
    edits: [{ in: 'Rounds.tick', find: 'this.#ticks += 1;', replace: '' }],
    unitTest: {
      file: 'raft/driver/rounds.test.ts',
      why: 'a leader without a quorum steps down after a while, and laws allow for that',
    },
  },
  {
    id: 'RN3',
    bug: 'a group without a quorum holds the others up in every round',
    law: 'a quorum makes progress',
    edits: [{ in: 'Rounds.tick', find: 'this.#late.set(group.id, index);', replace: 'void [group, index];' }],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'no law counts ticks' },
  },
  {
    id: 'RN4',
    bug: 'a group that was late once is never waited for again',
    law: 'what comes meanwhile shares the next round',
    edits: [
      {
        in: 'Rounds.proposed',
        find: 'if (group.core.applied < (this.#late.get(group.id) ?? 0)) return;',
        replace: 'if (this.#late.has(group.id)) return;',
      },
    ],
    unitTest: { file: 'raft/driver/rounds.test.ts', why: 'more rounds decide the same' },
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
    bug: 'the turn that ends a round forgets what waits for it',
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
      why: 'whatever comes next, a tick at the latest, has it proposed',
    },
  },
  {
    id: 'RN7',
    bug: 'a node that handed a group over lately keeps it from any other preferred leader',
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
      why: 'a world seldom hands over as often as that within ten seconds',
    },
  },
];
