/** Mutants: what operators say of keys: records, guards, blocks, resets. */
import type { Mutant } from './mutant.ts';

export const CUSTOMERS: readonly Mutant[] = [
  {
    id: 'CU1',
    bug: 'a snapshot forgets the limits that a key has of its own',
    edits: [
      {
        in: 'StateReader.#readRecords',
        find: "...(tier !== '' && { tier }), overrides, ...block",
        replace: "...(tier !== '' && { tier }), overrides: [], ...block",
      },
    ],
  },
  {
    id: 'CU2',
    bug: 'a snapshot forgets that a key is blocked',
    edits: [
      {
        in: 'StateReader.#readRecords',
        find: 'const block = readBlockOf(input);',
        replace: 'readBlockOf(input); const block = { isBlocked: false };',
      },
    ],
  },
  {
    id: 'CU3',
    bug: 'an entry grants a request that was matched with a record of before',
    edits: [
      {
        in: 'Judgement.isGuardedOff',
        find: 'const isSame = (this.#record?.version ?? 0) === guard.version;',
        replace: 'const isSame = guard.version >= 0;',
      },
    ],
  },
  {
    id: 'CU4',
    bug: 'a reset leaves what a meter of before remembers',
    edits: [
      {
        in: 'LimiterState.resetKey',
        find: 'if (slot === undefined) continue;',
        replace: 'if (slot === undefined || !keys.active) continue;',
      },
    ],
  },
  {
    id: 'CU5',
    bug: 'a refund of what was granted before a reset gives back what was granted since',
    features: ['customers', 'ids', 'refunds', 'meters', 'costs'],
    edits: [
      {
        in: 'KeyTable.refund',
        find: 'if (decidedIndex < this.keys.sinceIndexAt(slot)) return;',
        replace: '',
      },
    ],
  },
  {
    id: 'CU6',
    bug: 'a slow bucket is forgotten as if it had the limit of its rule',
    features: ['customers', 'meters', 'costs', 'ids'],
    edits: [
      {
        in: 'LimiterState.#forgetIfIdle',
        find: 'customers.ruleToForget(keys, slot)',
        replace: 'keys.rule',
      },
    ],
  },
  {
    id: 'CU7',
    bug: 'a node does not say with which record it matched a request',
    edits: [
      {
        in: 'guardOf',
        find: 'return { userId: customer.key, version: customer.version };',
        replace: 'return undefined;',
      },
    ],
  },
  {
    id: 'CU8',
    bug: 'a customer who is blocked is let through where no limit lies with its record',
    edits: [
      {
        in: 'recordFound',
        find: "if (!record.isBlocked || settle === true) return { kind: 'same', record };",
        replace: "if (record.version === version) return { kind: 'same', record };",
      },
    ],
  },
  {
    id: 'CU9',
    bug: 'a leader refuses for a record that it has not applied yet',
    edits: [{ in: 'unlessOlder', find: 'isOlder ? undefined : denial', replace: 'denial' }],
    unitTest: {
      file: 'partition/customers.test.ts',
      why: 'whoever is told of another record asks again, so that nothing but time is lost, and changes of records are always under way',
    },
  },
  {
    id: 'CU10',
    bug: 'a snapshot that is installed brings no records of keys along',
    edits: [
      {
        in: 'StateReader.#readRecords',
        find: 'customers.put(name, userId, record);',
        replace: '',
      },
    ],
  },
  {
    id: 'CU11',
    bug: 'another partition denies by the tier of before, and nobody asks which it is now',
    law: 'is denied by a limit of its tier',
    edits: [
      {
        in: 'MatchedRequests.#refuse',
        find: 'else this.#askRecord(customer, [first], { asking, ruleSet, goOn: deny });',
        replace: 'else deny();',
      },
    ],
    unitTest: {
      file: 'matching/customers.test.ts',
      why: 'few requests of customers whose tier a node has wrong are denied by another partition: one in some 300 seeds',
    },
  },
  {
    id: 'CU12',
    bug: 'a snapshot forgets when a block ends',
    edits: [
      {
        in: 'StateReader.#readRecords',
        find: 'const block = readBlockOf(input);',
        replace: 'const { isBlocked } = readBlockOf(input); const block = { isBlocked };',
      },
    ],
  },
  {
    id: 'CU13',
    bug: 'the end of a block counts from the last change before its entry',
    edits: [
      {
        in: 'decide',
        find: 'blockOf(action, timeMillis)',
        replace: 'blockOf(action, state.changedMillis)',
      },
    ],
  },
  {
    id: 'CU14',
    bug: 'a block ends a second late',
    edits: [
      {
        in: 'isBlockedAt',
        find: 'timeMillis < (record.blockedUntilMillis ?? Infinity)',
        replace: 'timeMillis - 1_000 < (record.blockedUntilMillis ?? Infinity)',
      },
    ],
  },
  {
    id: 'CU15',
    bug: 'a record that is read still has a block that has ended',
    edits: [
      {
        in: 'recordAt',
        find: 'return { ...others, isBlocked: false };',
        replace: 'return record;',
      },
    ],
  },
  {
    id: 'CU16',
    bug: 'a sweep forgets a record whose block has not ended',
    features: ['customers', 'smallStates'],
    edits: [
      {
        in: 'CustomerTable.sweep',
        find: 'recordAt(this.#records[slot]!.record, timeMillis)',
        replace: 'recordAt(this.#records[slot]!.record, Infinity)',
      },
    ],
  },
  {
    id: 'CU17',
    bug: 'what an operator set as used inherits on top in the millisecond in which its window came into force',
    edits: [
      {
        in: 'KeyTable.setUsed',
        find: 'Math.max(applied.timeMillis, this.sinceMillis)',
        replace: 'applied.timeMillis',
      },
    ],
    unitTest: {
      file: 'limiter/set-used.test.ts',
      why: 'no world has a rule table and an operator in one millisecond of group time often enough',
    },
  },
  {
    id: 'CU18',
    bug: 'more than the limit may be set as used',
    edits: [
      {
        in: 'setUsed',
        find: "if (used > usedMax) return { kind: 'above', ruleId, usedMax };",
        replace: '',
      },
    ],
  },
];
