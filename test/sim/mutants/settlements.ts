/** Bugs of costs that are told after the fact. */
import type { Mutant } from './mutant.ts';

export const SETTLEMENTS: readonly Mutant[] = [
  {
    id: 'SE1',
    bug: 'a settled cost that is over the limit is denied',
    law: 'what happened already is charged',
    edits: [{ in: 'Judgement.isDenied', find: '!this.#isSettled && ', replace: '' }],
  },
  {
    id: 'SE2',
    bug: 'a settled cost of several limits is charged where all have room alone',
    law: 'what happened already is charged',
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
    bug: 'who is blocked is not charged for what happened already',
    law: 'what happened already is charged',
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
    bug: 'debt is told as less than nothing',
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
    bug: 'a settled cost counts up to the limit alone',
    law: 'debt denies until it has slid out',
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
    bug: 'requests behind a settled one are taken for settled',
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
    bug: 'a bucket takes debt that its numbers are not exact for',
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
    bug: 'a settlement that is asked again as rules changed is another one to who charged it',
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
      why: 'users of the simulator settle by keys and rules that they name',
    },
  },
  {
    id: 'SE9',
    bug: 'a settlement that some have charged is told to count nowhere',
    law: 'what may count is told so',
    edits: [{ in: 'maybeCharged', find: '{ ...answer, proposed: true }', replace: 'answer' }],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator settle by keys and rules that they name',
    },
  },
  {
    id: 'SE10',
    bug: 'what a gateway charges under a rule that is post-paid is denied by it',
    law: 'what happened already is charged',
    edits: [{ in: 'chargesOf', find: 'applied.rule.postPaid === true', replace: 'applied.cost < 0' }],
    unitTest: { file: 'matching/settlements.test.ts', why: 'no user of the simulator asks by lists' },
  },
  {
    id: 'SE11',
    bug: 'who is not told whether its estimate was given back hears that all is done',
    law: 'what may count is told so',
    edits: [
      {
        in: 'settleRequest',
        find: "if (refunded.kind === 'unavailable')",
        replace: "if (refunded.kind === 'unavailable' && refunded.reason === 'starting')",
      },
    ],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator settle by keys and rules that they name',
    },
  },
  {
    id: 'SE12',
    bug: 'an estimate is given back though its true cost was not charged',
    law: 'what was used is charged',
    edits: [
      { in: 'settleRequest', find: 'if (!isAllowed(answer)) return done(answer, partition);', replace: '' },
    ],
    unitTest: {
      file: 'matching/settlements.test.ts',
      why: 'users of the simulator settle by keys and rules that they name',
    },
  },
  {
    id: 'SE13',
    bug: 'a log that brings debt along from another meter is asked for room for the request alone',
    law: 'no request ends a node',
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
    bug: 'a counter brings more debt along than its snapshot may have',
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
    bug: 'the first partition is not told which attempt it grants',
    law: 'what was granted can be given back',
    edits: [
      {
        in: 'ownRequestFor',
        find: 'attempt !== undefined && request.requestId !== undefined',
        replace: 'attempt === undefined && request.requestId !== undefined',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'the simulator gives back by keys: what stays charged denies too much, which is legal',
    },
  },
  {
    id: 'SE16',
    bug: 'a refund reaches the first partition alone',
    law: 'what was granted can be given back',
    edits: [
      {
        in: 'refundAs',
        find: '!refunded || attempt === undefined',
        replace: '!refunded || attempt !== undefined',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'the simulator gives back by keys: what stays charged denies too much, which is legal',
    },
  },
  {
    id: 'SE17',
    bug: 'what an attempt reserves has the number of another one',
    law: 'what was granted can be given back',
    edits: [
      {
        in: 'reservationsFor',
        find: 'requestId: reservationId(attempt, part)',
        replace: 'requestId: reservationId(attempt + 1, part)',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'the simulator gives back by keys: what stays charged denies too much, which is legal',
    },
  },
  {
    id: 'SE18',
    bug: 'a snapshot forgets which attempt was granted',
    law: 'what was granted can be given back',
    edits: [{ in: 'COLUMNS', find: "float('attempt', ATTEMPT),", replace: "float('attempt', WAIT)," }],
  },
  {
    id: 'SE19',
    bug: 'which attempt was granted is lost between nodes',
    law: 'what was granted can be given back',
    edits: [{ in: 'encodeRefund', find: 'out.integer(attempt);', replace: 'out.integer(attempt * 0);' }],
    unitTest: {
      file: 'wire/forwarded.test.ts',
      why: 'the simulator gives back by keys, where nobody needs the attempt',
    },
  },
  {
    id: 'SE20',
    bug: 'a settlement tells what is left before its estimate was given back',
    law: 'what is left is what others get',
    edits: [
      {
        in: 'settleRequest',
        find: 'requests.leftNow(question, answer, (left) => done(left, partition));',
        replace: 'done(answer, partition);',
      },
    ],
    unitTest: {
      file: 'matching/given-back-random.test.ts',
      why: 'users of the simulator settle by keys and rules that they name',
    },
  },
  {
    id: 'SE21',
    bug: 'what an entry says of the attempt is read as nothing',
    law: 'what was granted can be given back',
    edits: [
      {
        in: 'BatchCursor.#nextRare',
        find: 'this.attempt = this.#integer(COLUMN.attempt) || undefined;',
        replace: 'this.attempt = this.#integer(COLUMN.attempt) > 0 ? undefined : undefined;',
      },
    ],
  },
];
