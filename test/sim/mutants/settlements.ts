/** Mutants: settlements, which are costs that a client reports after the fact. */
import type { Mutant } from './mutant.ts';

export const SETTLEMENTS: readonly Mutant[] = [
  {
    id: 'SE1',
    bug: 'a settlement that exceeds the limit is denied',
    law: 'a cost that has already been used is charged',
    edits: [{ in: 'Judgement.isDenied', find: '!this.#isSettled && ', replace: '' }],
  },
  {
    id: 'SE2',
    bug: 'a settlement under several limits is charged only if all of them have room',
    law: 'a cost that has already been used is charged',
    edits: [
      {
        in: 'JointJudgement.judge',
        find: 'if (judgement.isDenied)',
        replace: 'if (judgement.isHeld || !judgement.isWithinLimit)',
      },
    ],
  },
  {
    id: 'SE3',
    bug: 'a settlement of a blocked customer is not charged',
    law: 'a cost that has already been used is charged',
    edits: [
      {
        in: 'Judgement.judge',
        find: 'if (this.isBlocked && !question.isSettled)',
        replace: 'if (this.isBlocked)',
      },
    ],
  },
  {
    id: 'SE4',
    bug: 'debt is reported as a negative `remaining`',
    law: 'numbers are integers >= 0',
    edits: [
      {
        in: 'Judgement.grant',
        find: 'Math.max(0, capacity - this.live - this.cost)',
        replace: 'capacity - this.live - this.cost',
      },
    ],
  },
  {
    id: 'SE5',
    bug: 'a settlement counts only up to the limit',
    law: 'debt denies until it has slid out of the window',
    edits: [
      {
        in: 'Judgement.judgeLimit',
        find: 'this.cost = cost;',
        replace: 'this.cost = isSettled ? Math.min(cost, Math.max(1, this.#capacity)) : cost;',
      },
    ],
  },
  {
    id: 'SE6',
    bug: 'the requests after a settlement in an entry are taken for settlements',
    law: 'no window over its limit',
    edits: [
      {
        in: 'BatchCursor.#nextRare',
        find: 'this.isSettled = this.#integer(COLUMN.settle) === 1;',
        replace: 'this.isSettled = this.#integer(COLUMN.settle) === 1 || this.isSettled;',
      },
    ],
  },
  {
    id: 'SE7',
    bug: 'a bucket takes on more debt than its numbers can hold exactly',
    law: 'every state can be written down and read',
    edits: [
      { in: 'Buckets.grant', find: 'Math.min(LEVEL_COST_MAX * windowMillis, level)', replace: 'level' },
    ],
    unitTest: {
      file: 'limiter/settlements.test.ts',
      why: 'it takes thousands of settlements of the largest cost to one key',
    },
  },
  {
    id: 'SE8',
    bug: 'a settlement that is repeated because the rules changed gets a new id, so it may be charged twice',
    law: 'one charge under one id',
    edits: [
      {
        in: 'settle',
        find: 'asking.drawnId ??= attemptId(newAttempt());',
        replace: 'asking.drawnId = attemptId(newAttempt());',
      },
    ],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator name the keys and rules under which they settle, and send no descriptors',
    },
  },
  {
    id: 'SE9',
    bug: 'a settlement that some of its limits have charged is reported as charged nowhere',
    law: 'a request that may be charged is reported so',
    edits: [{ in: 'maybeCharged', find: '{ ...answer, proposed: true }', replace: 'answer' }],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator name the keys and rules under which they settle, and send no descriptors',
    },
  },
  {
    id: 'SE10',
    bug: 'a charge by a gateway under a post-paid rule may be denied',
    law: 'a cost that has already been used is charged',
    edits: [{ in: 'chargesOf', find: 'applied.rule.postPaid === true', replace: 'applied.cost < 0' }],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'no user of the simulator sends lists of descriptors',
    },
  },
  {
    id: 'SE11',
    bug: 'a settlement is reported as complete though its estimate may not have been given back',
    law: 'a request that may be charged is reported so',
    edits: [
      {
        in: 'settleRequest',
        find: "if (refunded.kind === 'unavailable')",
        replace: "if (refunded.kind === 'unavailable' && refunded.reason === 'starting')",
      },
    ],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator name the keys and rules under which they settle, and send no descriptors',
    },
  },
  {
    id: 'SE12',
    bug: 'an estimate is given back though its true cost was not charged',
    law: 'the cost that was used is charged',
    edits: [
      { in: 'settleRequest', find: 'if (!isAllowed(answer)) return done(answer, partition);', replace: '' },
    ],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator name the keys and rules under which they settle, and send no descriptors',
    },
  },
  {
    id: 'SE13',
    bug: 'when a log inherits debt from another meter, room is checked for the new request only',
    law: 'no request stops a node',
    edits: [
      {
        in: 'bytesToInherit',
        find: 'const cost = inherited.cost + demand.cost;',
        replace: 'const { cost } = demand;',
      },
    ],
    unitTest: {
      file: 'limiter/settlements.test.ts',
      why: 'it takes thousands of settlements of the largest cost to one key',
    },
  },
  {
    id: 'SE14',
    bug: 'a counter inherits more debt than its snapshot can hold',
    law: 'every state can be written down and read',
    edits: [
      {
        in: 'SlidingCounters.grant',
        find: 'Math.min(COUNT_MAX, this.#current + cost)',
        replace: 'this.#current + cost',
      },
    ],
    unitTest: {
      file: 'limiter/settlements.test.ts',
      why: 'it takes settlements of the largest cost to one key',
    },
  },
  {
    id: 'SE15',
    bug: 'the first partition does not learn the number of the attempt that it grants',
    law: 'a grant can be given back',
    edits: [
      {
        in: 'ownRequestFor',
        find: 'attempt !== undefined && request.requestId !== undefined',
        replace: 'attempt === undefined && request.requestId !== undefined',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'the simulator refunds by keys, and a charge that stays behind only denies too much, which is legal',
    },
  },
  {
    id: 'SE16',
    bug: 'a refund reaches the first partition only',
    law: 'a grant can be given back',
    edits: [
      {
        in: 'refundAs',
        find: '!refunded || attempt === undefined',
        replace: '!refunded || attempt !== undefined',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'the simulator refunds by keys, and a charge that stays behind only denies too much, which is legal',
    },
  },
  {
    id: 'SE17',
    bug: 'a reservation carries the number of another attempt',
    law: 'a grant can be given back',
    edits: [
      {
        in: 'reservationsFor',
        find: 'requestId: reservationId(attempt, part)',
        replace: 'requestId: reservationId(attempt + 1, part)',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'the simulator refunds by keys, and a charge that stays behind only denies too much, which is legal',
    },
  },
  {
    id: 'SE18',
    bug: 'a snapshot forgets which attempt was granted',
    law: 'a grant can be given back',
    edits: [{ in: 'COLUMNS', find: "float('attempt', ATTEMPT),", replace: "float('attempt', WAIT)," }],
  },
  {
    id: 'SE19',
    bug: 'the number of the granted attempt is lost between nodes',
    law: 'a grant can be given back',
    edits: [{ in: 'encodeRefund', find: 'out.integer(attempt);', replace: 'out.integer(attempt * 0);' }],
    unitTest: {
      file: 'wire/forwarded.test.ts',
      why: 'the simulator refunds by keys, which needs no number of an attempt',
    },
  },
  {
    id: 'SE20',
    bug: 'a settlement reports the number that remained before its estimate was given back',
    law: 'the cost that is reported as remaining can be used',
    edits: [
      {
        in: 'settleRequest',
        find: 'requests.leftNow(question, answer, (left) => done(left, partition));',
        replace: 'done(answer, partition);',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'users of the simulator name the keys and rules under which they settle, and send no descriptors',
    },
  },
  {
    id: 'SE21',
    bug: 'the number of an attempt in an entry is read as absent',
    law: 'a grant can be given back',
    edits: [
      {
        in: 'BatchCursor.#nextRare',
        find: 'this.attempt = this.#integer(COLUMN.attempt) || undefined;',
        replace: 'this.attempt = this.#integer(COLUMN.attempt) > 0 ? undefined : undefined;',
      },
    ],
  },
];
