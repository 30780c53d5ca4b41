/** Mutants: rules that requests state. */
import type { Mutant } from './mutant.ts';

const OF_THE_TABLE = 'clients of the simulator ask by rules of the table alone';

export const STATED: readonly Mutant[] = [
  {
    id: 'Z1',
    bug: 'the keys of stated rules are no part of the state',
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
    bug: 'a stated window is forgotten by the window of the table that stated rules share',
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
    bug: 'stated rules of one key share its grants',
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
    bug: 'a key states as many windows as it likes',
    law: 'what callers choose is bounded',
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
    bug: 'windows of all keys count against the bound of one',
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
    bug: 'a reset forgets one of the stated windows of a key',
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
    bug: 'what the clocks add is added to every interval of a throttle',
    law: 'within 2 % of the rate that is asked for',
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
    bug: 'a throttle waits for the whole of a millisecond of which it needs a part',
    law: 'within 2 % of the rate that is asked for',
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
    bug: 'a request that comes late in its millisecond is not paid for by the period',
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
    bug: 'other numbers begin anew',
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
    bug: 'a refund of a throttle gives back what has flowed out',
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
    bug: 'a throttle is forgotten before all that is owed has flowed out',
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
