/** Mutants: between the log and those who wait for it: the driver of the groups, and the partition. */
import type { Mutant } from './mutant.ts';

export const DRIVER: readonly Mutant[] = [
  {
    id: 'D8',
    bug: 'the disk is never found to answer again',
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
  },
  {
    id: 'D10',
    bug: 'the same leader in a newer term is no news',
    law: 'a quorum makes progress',
    edits: [{ in: 'tellStatus', find: 'told.term === core.term && told.leader', replace: 'told.leader' }],
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
      { in: 'Partition.decide', find: 'if (this.#applied.term !== this.#term)', replace: 'if (false)' },
    ],
  },
  {
    id: 'D11b',
    bug: 'a leader answers a look before it has applied what former leaders decided',
    law: 'a look tells what follows from the log of a leader in office',
    edits: [
      {
        in: 'Partition.decide',
        find: 'if (this.#applied.term !== this.#term)',
        replace: "if (this.#applied.term !== this.#term && request.ask !== 'look')",
      },
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
        find: 'decisions[i] = decision;',
        replace:
          'decisions[i] = decision; const told = waiters[i]; if (told !== undefined) { this.#waiters.answer(told, answerOf(decision, told.request.requestId)); told.done = () => {}; }',
      },
    ],
  },
];
