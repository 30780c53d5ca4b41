/** Mutants: windows and denials. */
import type { Mutant } from './mutant.ts';

export const LIMITER: readonly Mutant[] = [
  {
    id: 'M11',
    bug: 'a grant stops counting a millisecond early',
    edits: [
      {
        in: 'LogRuns.liveCost',
        find: 'this.firstLive(t - windowMillis)',
        replace: 'this.firstLive(t - windowMillis + 1)',
      },
    ],
  },
  {
    id: 'X7',
    bug: 'a leader denies at once the request that would just fit',
    edits: [
      {
        in: 'LimiterStateMachine.quickDenial',
        find: "if (outcome === 'repeated' || outcome === 'fits') return undefined;",
        replace:
          "if (outcome === 'fits' && this.#judgement.live + this.#judgement.cost === this.#judgement.rule.limit) return this.#judgement.denial(this.#whole); if (outcome === 'repeated' || outcome === 'fits') return undefined;",
      },
    ],
  },
  {
    id: 'X13',
    bug: 'every receipt names the first position in its log entry',
    edits: [
      {
        in: 'receiptAt',
        find: '{ term, index, position, timeMillis }',
        replace: '{ term, index, position: 0, timeMillis }',
      },
    ],
  },
  {
    id: 'W1',
    bug: 'a grant that is exactly one window old still counts',
    law: 'a denial has a reason: only grants younger than the window count',
    edits: [{ in: 'LogRuns.isAllAfter', find: 'this.oldestOffset >', replace: 'this.oldestOffset >=' }],
  },
  {
    id: 'W24',
    bug: 'a key still remembers the time of its oldest grant after that grant is forgotten',
    law: 'no window over its limit in group time',
    edits: [
      {
        in: 'SlidingLogs.#prune',
        find: 'log.oldestOffset = log.count === 0 ? 0 : log.offset(0);',
        replace: '',
      },
    ],
  },
  {
    id: 'W25',
    bug: 'a key still remembers the time of its newest grant after that grant was refunded',
    law: 'a denied request leaves no trace',
    edits: [{ in: 'SlidingLogs.refund', find: 'log.readEnds();', replace: '' }],
  },
  {
    id: 'W2',
    bug: 'windows are not widened for the rounding of stamps to whole milliseconds',
    law: 'no window over its limit in real time',
    edits: [{ in: 'groupMillisMax', find: '/ 1_000_000) + 1', replace: '/ 1_000_000)' }],
  },
  {
    id: 'W3',
    bug: 'windows over timestamps of callers are widened for clock drift, as if they were group time',
    law: 'denials by timestamps of callers follow the rule exactly',
    edits: [
      {
        in: 'Judgement.judgeLimit',
        find: 'this.isEvent ? rule.windowMillis : keys.effectiveWindowMillis',
        replace: 'keys.effectiveWindowMillis',
      },
    ],
  },
  {
    id: 'W4',
    bug: 'a request without a timestamp is not held back when its key has stamps ahead of group time',
    law: 'no window over its limit in real time',
    edits: [
      {
        in: 'Judgement.judgeLimit',
        find: '(!this.isEvent || this.asked < forgottenMillis)',
        replace: 'this.asked < forgottenMillis',
      },
    ],
  },
  {
    id: 'W5',
    bug: 'the `retryAfter` of a denied request is too short',
    law: '`retryAfter` is the time at which the request fits',
    edits: [
      { in: 'Judgement.denial', find: 'isHeld ? millis + (t - this.asked)', replace: 'isHeld ? millis' },
    ],
  },
  {
    id: 'W6',
    bug: '`remaining` is the number before the grant, not after it',
    law: '`remaining` is what is left',
    edits: [
      { in: 'Judgement.grant', find: 'capacity - this.live - this.cost', replace: 'capacity - this.live' },
    ],
  },
  {
    id: 'W7',
    bug: '`remaining` of a request that is held back is not 0',
    law: '`remaining` is what is left',
    edits: [
      {
        in: 'Judgement.denial',
        find: 'isHeld ? 0 : Math.max(0, capacity - this.live)',
        replace: 'Math.max(0, capacity - this.live)',
      },
    ],
  },
  {
    id: 'W8',
    bug: '`retryAfter` waits for one more grant to expire than needed',
    law: '`retryAfter` is the time at which the request fits',
    edits: [
      { in: 'LogRuns.millisUntilAvailable', find: '>= excess', replace: '> excess' },
      {
        in: 'LogRuns.millisUntilAvailable',
        find: 'first + excess - 1',
        replace: 'Math.min(first + excess, this.count - 1)',
      },
    ],
  },
  {
    id: 'W9',
    bug: 'the reset time ignores how late the timestamp of the caller is',
    law: '`reset` is when nothing counts any more',
    edits: [
      {
        in: 'Judgement.grant',
        find: 'this.#sinceAsked(empty)',
        replace: 'empty',
      },
    ],
  },
  {
    id: 'W10',
    bug: 'a window forgets one run of grants more than expired',
    law: 'no window over its limit in log time',
    edits: [
      {
        in: 'SlidingLogs.#prune',
        find: 'const first = log.firstLive(horizonMillis);',
        replace:
          'const expired = log.firstLive(horizonMillis); const first = expired === 0 ? 0 : Math.min(expired + 1, log.count);',
      },
    ],
  },
  {
    id: 'W11',
    bug: 'a rule keeps its old window when the rules change',
    law: 'windows are those of the rules in force',
    edits: [
      { in: 'KeyTable.follow', find: 'this.effectiveWindowMillis = effectiveWindowMillis;', replace: '' },
    ],
  },
  {
    id: 'W12',
    bug: 'a rule keeps its old limit when the rules change',
    law: 'limits are those of the rules in force',
    edits: [{ in: 'KeyTable.follow', find: 'this.rule = rule;', replace: '' }],
  },
  {
    id: 'W13',
    bug: 'a rule that was removed still grants',
    law: 'an unknown rule is refused',
    edits: [
      {
        in: 'LimiterState.linkTables',
        find: 'if (keys.active) this.#tableOf.set(id, keys);',
        replace: 'if (keys.active || !this.#tableOf.has(id)) this.#tableOf.set(id, keys);',
      },
    ],
  },
  {
    id: 'W14',
    bug: 'a rule that is removed takes its grants with it',
    law: 'no window over its limit when the rule comes back',
    edits: [
      {
        in: 'tablesUnder',
        find: 'keys.active || keys.size > 0 || keys.evictedThroughMillis > 0',
        replace: 'keys.active',
      },
    ],
  },
  {
    id: 'W15',
    bug: 'a leader denies at once by the time of the last entry, not by the time now',
    law: 'no wrong denial, in real time',
    edits: [
      {
        in: 'LimiterStateMachine.quickDenial',
        find: 'const now = Math.max(nowMillis, applied.timeMillis);',
        replace: 'const now = applied.timeMillis;',
      },
    ],
  },
  {
    id: 'W16',
    bug: 'timestamps are accepted however far they are ahead',
    law: 'a timestamp is at most `maxAheadMillis` ahead',
    edits: [
      { in: 'inadmissible', find: 'if (timestampMillis <= nowMillis() + maxAheadMillis)', replace: '' },
    ],
    unitTest: {
      file: 'partition/refusals.test.ts',
      why: 'no client of the simulator sends timestamps that far ahead',
    },
  },
  {
    id: 'W17',
    bug: 'a request that names no rule gets the last one',
    law: 'the default rule is the first',
    edits: [
      {
        in: 'LimiterState.ruleIdOf',
        find: 'this.table?.rules[0]?.id',
        replace: 'this.table?.rules.at(-1)?.id',
      },
    ],
  },
  {
    id: 'W18',
    bug: 'a request whose cost is above the limit is proposed like any other',
    law: 'a request that can never fit is invalid',
    edits: [{ in: 'inadmissible', find: 'capacity > 0 && cost > capacity', replace: 'false' }],
  },
  {
    id: 'W19',
    bug: 'in a log where all costs are 1, a second grant in the same millisecond is not counted',
    law: 'no window over its limit in log time',
    edits: [{ in: 'SlidingLogs.record', find: 'recorded + cost === runs', replace: 'cost === 1' }],
  },
  {
    id: 'W20',
    bug: 'a log that changes to its wide form forgets what was spent before its first run',
    law: 'a denial has a reason: only grants younger than the window count',
    edits: [
      {
        in: 'LogRuns.copyTo',
        find: 'this.cumulative(i)',
        replace: 'this.cumulative(i) - this.spentBeforeHead',
      },
    ],
  },
  {
    id: 'W21',
    bug: 'in a log without stored sums, the sum up to a run leaves that run out',
    law: 'no window over its limit in log time',
    edits: [
      {
        in: 'LogRuns.cumulative',
        find: 'this.spentBeforeHead + i + 1',
        replace: 'this.spentBeforeHead + i',
      },
    ],
  },
  {
    id: 'N1',
    bug: '`retryAfter` counts from the newest grant of the key, not from the time of the request',
    law: 'every decision is that of the naive limiter',
    edits: [
      {
        in: 'Judgement.#sinceAsked',
        find: 'waitMillis === 0 ? 0 : waitMillis + (this.t - this.asked)',
        replace: 'waitMillis',
      },
    ],
  },
  {
    id: 'Z5',
    bug: 'grants of a rule that was removed or changed its meter count by the clock drift of that time',
    law: 'no window over its limit in real time',
    edits: [
      {
        in: 'tablesUnder',
        find: 'const followed = rule !== undefined && keys.active ? rule : keys.rule;',
        replace: 'if (rule === undefined || !keys.active) continue; const followed = rule;',
      },
    ],
    unitTest: {
      file: 'limiter/meter-examples.test.ts',
      why: 'all rule sets of the simulator allow for the same clock drift',
    },
  },
  {
    id: 'W22',
    bug: 'a log grants more than its sums can hold',
    law: 'no request stops a node',
    edits: [
      {
        in: 'SlidingLogs.bytesToGrant',
        find: 'if (isTooMuch && this.open(slot, log).liveCost(t, keptMillis) + cost > COST_SUM_MAX) return Infinity;',
        replace: '',
      },
    ],
    unitTest: {
      file: 'limiter/large-limits.test.ts',
      why: 'it takes thousands of grants of the largest cost to one key',
    },
  },
  {
    id: 'W23',
    bug: 'the library keeps grants longer, as if the time of every caller ran ahead of all others',
    law: 'no request stops a process',
    edits: [
      {
        in: 'LocalLimiter.#judge',
        find: 'this.#question,\n      timestampMillis,',
        replace: 'this.#question, GROUP_MILLIS,',
      },
    ],
    unitTest: { file: 'limiter/library.test.ts', why: 'the library is no part of a cluster' },
  },
];
