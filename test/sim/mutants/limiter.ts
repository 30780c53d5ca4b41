/** Mutants: windows and denials. */
import type { Mutant } from './mutant.ts';

export const LIMITER: readonly Mutant[] = [
  {
    id: 'M11',
    bug: 'a grant leaves its window a millisecond early',
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
    bug: 'denials are decided at a time that lags behind',
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
    bug: 'every receipt names the first place of its entry',
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
    bug: 'a grant exactly one window old still counts',
    law: 'a denial has a reason: what counts is younger than the window',
    edits: [{ in: 'LogRuns.isAllAfter', find: 'this.oldestOffset >', replace: 'this.oldestOffset >=' }],
  },
  {
    id: 'W24',
    bug: 'a key remembers the time of a grant as its oldest after that was forgotten',
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
    bug: 'a key remembers the time of its newest grant after that was refunded',
    law: 'a denied request leaves no trace',
    edits: [{ in: 'SlidingLogs.refund', find: 'log.readEnds();', replace: '' }],
  },
  {
    id: 'W2',
    bug: 'windows do not allow for stamps being whole milliseconds',
    law: 'no window over its limit in real time',
    edits: [{ in: 'groupMillisMax', find: '/ 1_000_000) + 1', replace: '/ 1_000_000)' }],
  },
  {
    id: 'W3',
    bug: 'windows between timestamps of callers are widened like those of group time',
    law: 'event-time denials are those of the rule',
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
    bug: 'a request in group time is judged at the stamps of callers that are ahead of it',
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
    bug: 'a denied caller is told a retry-after that is too short',
    law: '`retryAfter` is the time at which the request fits',
    edits: [
      { in: 'Judgement.denial', find: 'isHeld ? millis + (t - this.asked)', replace: 'isHeld ? millis' },
    ],
  },
  {
    id: 'W6',
    bug: '`remaining` is what was left before the grant',
    law: '`remaining` is what is left',
    edits: [
      { in: 'Judgement.grant', find: 'capacity - this.live - this.cost', replace: 'capacity - this.live' },
    ],
  },
  {
    id: 'W7',
    bug: '`remaining` of who is held back is not 0',
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
    bug: 'the wait is for one more grant to expire than needed',
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
    bug: 'the time of the reset does not include how late the caller is',
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
    bug: 'a window forgets one run more than expired',
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
    bug: 'a rule keeps its former window when the table changes',
    law: 'windows are those of the rules in force',
    edits: [
      { in: 'KeyTable.follow', find: 'this.effectiveWindowMillis = effectiveWindowMillis;', replace: '' },
    ],
  },
  {
    id: 'W12',
    bug: 'a rule keeps its former limit when the table changes',
    law: 'limits are those of the rules in force',
    edits: [{ in: 'KeyTable.follow', find: 'this.rule = rule;', replace: '' }],
  },
  {
    id: 'W13',
    bug: 'a rule that left the table still grants',
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
    bug: 'a rule that leaves the table takes its grants with it',
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
    bug: 'denials at once are judged at the time of the last entry',
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
    bug: 'timestamps of any future are taken',
    law: 'a timestamp is at most `maxAheadMillis` ahead',
    edits: [
      { in: 'inadmissible', find: 'if (timestampMillis <= nowMillis() + maxAheadMillis)', replace: '' },
    ],
    unitTest: {
      file: 'partition/refusals.test.ts',
      why: 'no client of the simulator is that far ahead of time',
    },
  },
  {
    id: 'W17',
    bug: 'who names no rule gets the last one',
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
    bug: 'a cost above the limit is proposed like any other',
    law: 'what can never fit is invalid',
    edits: [{ in: 'inadmissible', find: 'capacity > 0 && cost > capacity', replace: 'false' }],
  },
  {
    id: 'W19',
    bug: 'a second grant of a millisecond is not counted where all others cost 1',
    law: 'no window over its limit in log time',
    edits: [{ in: 'SlidingLogs.record', find: 'recorded + cost === runs', replace: 'cost === 1' }],
  },
  {
    id: 'W20',
    bug: 'a log that becomes wide forgets what was spent before its head',
    law: 'a denial has a reason: what counts is younger than the window',
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
    bug: 'the implied cumulative cost of a run does not include the run',
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
    bug: 'a retry time counts from when the key was granted last, not from when it asked',
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
    bug: 'what a rule granted before it left or changed its meter counts by the clock drift of then',
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
      why: 'rule tables of the simulator all have one clock drift',
    },
  },
  {
    id: 'W22',
    bug: 'a log is told to grant more than it can add up',
    law: 'no request ends a node',
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
    bug: "the library keeps a caller's grants as if its time ran ahead of all others",
    law: 'no request ends a process',
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
