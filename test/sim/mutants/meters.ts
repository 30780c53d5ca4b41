/** Mutants: what meters other than the log count, and for how long. */
import type { Mutant } from './mutant.ts';

export const METERS: readonly Mutant[] = [
  {
    id: 'B1',
    bug: 'a grant counts as made at the granule before it, not at the next',
    law: 'no window over its limit in log time',
    edits: [{ in: 'stampOf', find: 't - since + granularityMillis', replace: 't - since' }],
  },
  {
    id: 'B2',
    bug: 'requests are judged at the stamp of the newest grant, though that is still to come',
    law: 'a denial has a reason: time is that of the request',
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
    bug: 'a snapshot does not bring back what is in a bucket: it is as good as full again',
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
    bug: 'the counter of the window before is dropped as soon as that is over',
    law: 'what a rolling window still reaches counts',
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
    bug: 'a part of a token that has not flowed in yet is given out',
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
    bug: 'a rule that changes its meter forgets what it granted',
    law: 'what was granted counts until it is out',
    edits: [{ in: 'Judgement.judgeKey', find: 'keys.retired.length > 0', replace: 'false' }],
  },
  {
    id: 'B9',
    bug: 'a key of a bucket is forgotten after a window, though more than that is in it',
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
      why: 'a key is kept as long as a full bucket takes to be empty, so few runs forget one that tells the difference',
    },
  },
  {
    id: 'B10',
    bug: 'who queues in a bucket goes on a place too early',
    law: 'those who go on when told keep to the rate',
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
    bug: 'a level that is carried over to another window is rounded down',
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
      why: 'users who ask with and without timestamps must leave a part of a cost between two windows, which one seed in many does',
    },
  },
  {
    id: 'B12',
    bug: 'a refund of a bucket gives back all of its cost, though much of it flowed out before the next grant',
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
      why: 'no verdict of the simulator yet: refunds of these meters that matter are rare in its worlds',
    },
  },
  {
    id: 'B13',
    bug: 'a refund goes to the meter in force, whichever counted the grant',
    law: 'never more is given back than still counts of a grant',
    edits: [{ in: 'LimiterState.#tableThatGranted', find: 'keys?.meterKind === meterKind', replace: 'true' }],
    unitTest: {
      file: 'limiter/refunds-of-meters.test.ts',
      why: 'the meter of a rule must change between a grant and its refund, which come within a few seconds',
    },
  },
  {
    id: 'B14',
    bug: 'what was granted before the rule changed is given back out of what was granted later',
    law: 'never more is given back than still counts of a grant',
    edits: [{ in: 'KeyTable.refund', find: 'decidedIndex <= this.ruledIndex', replace: 'decidedIndex < 0' }],
    unitTest: {
      file: 'limiter/refunds-of-meters.test.ts',
      why: 'a rule must change between a grant and its refund, which come within a few seconds',
    },
  },
  {
    id: 'B15',
    bug: 'a refund of a counter is taken from this window, though the grant is in the one before',
    law: 'never more is given back than still counts of a grant',
    edits: [
      { in: 'SlidingCounters.refund', find: 'windowsAgo === 0 ? CURRENT : PREVIOUS', replace: 'CURRENT' },
    ],
    unitTest: {
      file: 'limiter/meter-refunds.test.ts',
      why: 'no verdict of the simulator yet: refunds of these meters that matter are rare in its worlds',
    },
  },
  {
    id: 'B16',
    bug: 'a fixed window gives back what was granted in one before',
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
      why: 'no verdict of the simulator yet: refunds of these meters that matter are rare in its worlds',
    },
  },
  {
    id: 'B17',
    bug: 'others wait for what one key was granted before its rule changed its meter',
    law: 'every answer tells what its own key must wait for',
    edits: [
      {
        in: 'Judgement.judgeLimit',
        find: 'this.inherited = undefined; this.#othersMillis = 0;',
        replace: 'this.inherited = undefined;',
      },
    ],
  },
];
