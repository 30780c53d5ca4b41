/** Mutants: all meters except the sliding log: what they count, and for how long. */
import type { Mutant } from './mutant.ts';

export const METERS: readonly Mutant[] = [
  {
    id: 'B1',
    bug: 'the time of a grant is rounded down to its granule, not up to the next',
    law: 'no window over its limit in log time',
    edits: [{ in: 'stampOf', find: 't - since + granularityMillis', replace: 't - since' }],
  },
  {
    id: 'B2',
    bug: 'requests are judged at the time of the newest grant, even if that is still ahead',
    law: 'a denial has a reason: a request is judged at its own time',
    edits: [
      {
        in: 'GranularLogs.grant',
        find: 'this.#setNewestMillis(slot, demand.t);',
        replace: 'this.#setNewestMillis(slot, this.#demand.t);',
      },
    ],
  },
  {
    id: 'B3',
    bug: 'a snapshot does not restore the level of a bucket, so the bucket is as good as full again',
    law: 'replicas are equal, and no burst comes back before its time',
    edits: [
      {
        in: 'NumberRows.read',
        find: 'this.setNumber(slot, i, input.integer(name, min, max));',
        replace: 'this.setNumber(slot, i, Math.min(input.integer(name, min, max), 1));',
      },
    ],
  },
  {
    id: 'B4',
    bug: 'a new leader begins with full buckets',
    law: 'no more than the burst and what flowed in, in log time',
    edits: [
      {
        in: 'LimiterStateMachine.apply',
        find: 'this.#state.applied = { index, term, timeMillis };',
        replace:
          "if (term > before.term) for (const keys of this.#state.keyTables) if (keys.rule.meter === 'tokenBucket') while (keys.size > 0) keys.forget(0); this.#state.applied = { index, term, timeMillis };",
      },
    ],
  },
  {
    id: 'B5',
    bug: 'a sliding counter drops the count of the previous window as soon as the next one begins',
    law: 'grants that a rolling window still reaches count',
    edits: [
      {
        in: 'SlidingCounters.#open',
        find: 'windowsSince === 1 ? this.#current : 0',
        replace: '0',
      },
    ],
  },
  {
    id: 'B6',
    bug: 'a fraction of a token that has not flowed in yet is given out',
    law: 'no more than the burst and what flowed in, in log time',
    edits: [
      {
        in: 'Buckets.liveCost',
        find: 'ceilDiv(this.#levelAt(slot, demand), demand.windowMillis)',
        replace: 'floorDiv(this.#levelAt(slot, demand), demand.windowMillis)',
      },
    ],
  },
  {
    id: 'B7',
    bug: 'a fixed window begins with the first grant of a key',
    law: 'at most the limit in an aligned window',
    edits: [
      {
        in: 'FixedWindows.#count',
        find: 't < this.#endOf(rule, this.numbers.newestMillis(slot), t, isEvent)',
        replace: 't < this.numbers.newestMillis(slot) + rule.windowMillis / 2',
      },
    ],
  },
  {
    id: 'B8',
    bug: 'a rule that changes its meter forgets its grants',
    law: 'a grant counts until it expires',
    edits: [{ in: 'Judgement.judgeKey', find: 'keys.retired.length > 0', replace: 'false' }],
  },
  {
    id: 'B9',
    bug: 'a key of a bucket is forgotten after one window, though its level takes longer to drain',
    law: 'no more than the burst and what flowed in, in log time',
    edits: [
      {
        in: 'Buckets.idleAtMillis',
        find: 'millisToDrain(this.#level(slot, windowMillis), rule)',
        replace: 'Math.min(windowMillis, millisToDrain(this.#level(slot, windowMillis), rule))',
      },
    ],
    unitTest: {
      file: 'limiter/meters.test.ts',
      why: 'a key is kept as long as a full bucket takes to drain, so few runs forget one whose level still matters',
    },
  },
  {
    id: 'B10',
    bug: 'a request that queues in a bucket goes on one place too early',
    law: 'requests that wait as long as they are asked to keep the rate',
    edits: [
      {
        in: 'Judgement.grant',
        find: 'meter.millisUntilAvailable(slot, this, rule.queue)',
        replace: 'meter.millisUntilAvailable(slot, this, rule.queue - 1)',
      },
    ],
  },
  {
    id: 'B11',
    bug: 'a level that is converted to another window is rounded down',
    law: 'no more than the burst and what flowed in, in log time',
    edits: [
      {
        in: 'Buckets.#level',
        find: 'ceilScaled(level % parts, windowMillis, parts)',
        replace: 'floorDiv((level % parts) * windowMillis, parts)',
      },
    ],
    unitTest: {
      file: 'limiter/meter-histories.test.ts',
      why: 'users with and without timestamps must leave a fraction of a cost between two windows, which happens in one of many seeds',
    },
  },
  {
    id: 'B12',
    bug: 'a refund to a bucket gives back the whole cost, though much of it drained before the next grant',
    law: 'no more than the burst and what flowed in, less what was refunded',
    edits: [
      {
        in: 'Buckets.refund',
        find: 'cost - ceilDiv(elapsed * rateOf(rule), windowMillis)',
        replace: 'cost',
      },
    ],
    unitTest: {
      file: 'limiter/meter-refunds.test.ts',
      why: 'the simulator has no verdict yet: refunds of these meters that matter are rare in its worlds',
    },
  },
  {
    id: 'B13',
    bug: 'a refund goes to the meter in force, even if another one counted the grant',
    law: 'a refund gives back no more than what still counts of its grant',
    edits: [{ in: 'LimiterState.#tableThatGranted', find: 'keys?.meterKind === meterKind', replace: 'true' }],
    unitTest: {
      file: 'limiter/refunds-of-meters.test.ts',
      why: 'a rule must change its meter between a grant and its refund, which come within a few seconds',
    },
  },
  {
    id: 'B14',
    bug: 'a refund of a grant from before a rule change is taken out of later grants',
    law: 'a refund gives back no more than what still counts of its grant',
    edits: [{ in: 'KeyTable.refund', find: 'decidedIndex <= this.ruledIndex', replace: 'decidedIndex < 0' }],
    unitTest: {
      file: 'limiter/refunds-of-meters.test.ts',
      why: 'a rule must change between a grant and its refund, which come within a few seconds',
    },
  },
  {
    id: 'B15',
    bug: 'a refund to a sliding counter is taken from the current window, though the grant is in the previous one',
    law: 'a refund gives back no more than what still counts of its grant',
    edits: [
      { in: 'SlidingCounters.refund', find: 'windowsAgo === 0 ? CURRENT : PREVIOUS', replace: 'CURRENT' },
    ],
    unitTest: {
      file: 'limiter/meter-refunds.test.ts',
      why: 'the simulator has no verdict yet: refunds of these meters that matter are rare in its worlds',
    },
  },
  {
    id: 'B16',
    bug: 'a fixed window gives back grants of an earlier window',
    law: 'at most the limit in an aligned window, less what was refunded',
    edits: [
      {
        in: 'FixedWindows.refund',
        find: 'if (timeMillis < startMillis) return;',
        replace: '',
      },
    ],
    unitTest: {
      file: 'limiter/meter-refunds.test.ts',
      why: 'the simulator has no verdict yet: refunds of these meters that matter are rare in its worlds',
    },
  },
  {
    id: 'B17',
    bug: 'the wait that one key has because of an earlier meter is given to the next key, too',
    law: 'every answer says what its own key must wait for',
    edits: [
      {
        in: 'Judgement.judgeLimit',
        find: 'this.inherited = undefined; this.#othersMillis = 0;',
        replace: 'this.inherited = undefined;',
      },
    ],
  },
];
