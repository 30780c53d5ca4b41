/** Mutants: stated rules, which come with a request instead of the rule document. */
import type { Mutant } from './mutant.ts';

const OF_THE_TABLE = 'clients of the simulator ask only for rules of the table';

export const STATED: readonly Mutant[] = [
  {
    id: 'Z1',
    bug: 'the keys of stated rules are left out of the state',
    law: 'replicas that applied the same are equal',
    edits: [
      {
        in: 'LimiterState.keep',
        find: 'this.keyTables.push(shared);',
        replace: '',
      },
    ],
    unitTest: { file: 'limiter/stated-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z2',
    bug: 'a stated window is forgotten after the window of the shared table, not after its own',
    law: 'never more than the limit within a window',
    edits: [
      {
        in: 'StatedTables.windowToForget',
        find: 'return groupMillisMax(windowMillis, this.#driftPpm);',
        replace: 'return keys.effectiveWindowMillis;',
      },
    ],
    unitTest: { file: 'limiter/stated-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z3',
    bug: 'all stated rules of a key have one budget together',
    law: 'every limit and window has a budget of its own',
    edits: [
      {
        in: 'KeyTable.#stored',
        find: 'this.#nameEnd',
        replace: "'\\n0/1ms'",
      },
    ],
    unitTest: { file: 'limiter/stated-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z4',
    bug: 'a configured rule may have the id of a stated one',
    law: 'no window over its limit when the rule comes back',
    edits: [
      {
        in: 'validateRule',
        find: 'if (!isStatedId(rule.id)) return rule;',
        replace: 'return rule;',
      },
    ],
    unitTest: {
      file: 'limiter/rules.test.ts',
      why: 'no rule of the simulator has such an id',
    },
  },
  {
    id: 'Z6',
    bug: 'a key may state any number of windows',
    law: 'everything that callers can choose is bounded',
    edits: [
      {
        in: 'StatedTables.hasRoomFor',
        find: 'return count < STATED_WINDOWS_PER_KEY_MAX;',
        replace: 'return true;',
      },
    ],
    unitTest: { file: 'limiter/stated-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z7',
    bug: 'the windows of all keys count against the bound of each key',
    law: 'nobody is shut out by what others state',
    edits: [
      {
        in: 'StatedTables.#windowsOf',
        find: 'if (name.isAt(bytes, nameFrom, this.#separatorAt())) yield slot;',
        replace: 'yield slot;',
      },
      {
        in: 'StatedTables.#windowsOf',
        find: 'keys.withHash(name.hash)',
        replace: 'Array.from({ length: keys.size }, (_, slot) => slot)',
      },
    ],
    unitTest: { file: 'limiter/stated-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z8',
    bug: 'a reset clears only one of the stated windows of a key',
    law: 'after a reset nothing counts',
    edits: [
      {
        in: 'LimiterState.resetKey',
        find: 'for (; slot !== undefined; slot = this.stated.slotOf(keys, this.name)) keys.reset(slot);',
        replace: 'keys.reset(slot);',
      },
    ],
    unitTest: { file: 'limiter/stated-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z9',
    bug: 'the allowance for clocks is added to every interval of a throttle',
    law: 'within 2 % of the requested rate',
    edits: [
      {
        in: 'intervalNanos',
        find: 'ceilDiv((windowMillis + 1) * NANOS_PER_MILLI, Math.max(1, rule.limit))',
        replace: 'ceilDiv(windowMillis * NANOS_PER_MILLI, Math.max(1, rule.limit)) + NANOS_PER_MILLI',
      },
    ],
    unitTest: { file: 'limiter/throttle-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z10',
    bug: 'a throttle waits for a whole millisecond when it needs only a part of it',
    law: 'within 2 % of the requested rate',
    edits: [
      {
        in: 'ArrivalTimes.liveCost',
        find: 'this.#debtAt(slot, demand.t) - LATENESS_NANOS',
        replace: 'this.#debtAt(slot, demand.t)',
      },
    ],
    unitTest: { file: 'limiter/throttle-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z11',
    bug: 'the period of a throttle does not pay for requests that come late in their millisecond',
    law: 'no more than the burst and the rate in a period, in real time',
    edits: [
      {
        in: 'intervalNanos',
        find: 'windowMillis + 1',
        replace: 'windowMillis - 1',
      },
    ],
    unitTest: { file: 'limiter/throttle-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z12',
    bug: 'a throttle with other numbers starts with a new state',
    law: 'a key has one state for all numbers of CL.THROTTLE',
    edits: [
      {
        in: 'StatedTables.#newTable',
        find: 'shared?.rule.id === WINDOWS_ID ? this.#stored : undefined',
        replace: 'shared === undefined ? undefined : this.#stored',
      },
    ],
    unitTest: { file: 'limiter/throttle-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z13',
    bug: 'a refund of a throttle also gives back what has flowed out already',
    law: 'never more than the burst and what flows out, less what was given back',
    edits: [
      {
        in: 'ArrivalTimes.refund',
        find: 'debt - (nanos - elapsed * NANOS_PER_MILLI)',
        replace: 'debt - nanos',
      },
    ],
    unitTest: { file: 'limiter/throttle-rules.test.ts', why: OF_THE_TABLE },
  },
  {
    id: 'Z14',
    bug: 'a throttle is forgotten before its whole debt has flowed out',
    law: 'never more than the burst and the rate',
    edits: [
      {
        in: 'ArrivalTimes.idleAtMillis',
        find: 'ceilDiv(this.numbers.number(slot, DEBT), NANOS_PER_MILLI)',
        replace: '0',
      },
    ],
    unitTest: { file: 'limiter/throttle-rules.test.ts', why: OF_THE_TABLE },
  },
];
