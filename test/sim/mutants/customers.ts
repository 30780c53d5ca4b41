/** Mutants: customers: their records, blocks, resets, and the version of the record that a request was matched with. */
import type { Mutant } from './mutant.ts';

export const CUSTOMERS: readonly Mutant[] = [
  {
    id: 'CU1',
    bug: 'a snapshot forgets the overrides of a customer',
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
    bug: 'a snapshot forgets that a customer is blocked',
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
    bug: 'an entry grants a request that was matched with an older customer record',
    edits: [
      {
        in: 'Judgement.isRefusedByGuard',
        find: 'const isSame = (this.#record?.version ?? 0) === guard.version;',
        replace: 'const isSame = guard.version >= 0;',
      },
    ],
  },
  {
    id: 'CU4',
    bug: 'a reset clears only the meter in force, not an earlier one',
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
    bug: 'a refund of a grant from before a reset takes back grants made since',
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
    bug: 'a bucket with an override is forgotten as early as if it had the limit of its rule',
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
    bug: 'a node does not send the version of the record by which it matched a request',
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
    bug: 'a blocked customer is let through if the partition of its record has none of its limits',
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
    bug: 'a leader denies by a customer record that is older than the one the request was matched with',
    edits: [{ in: 'unlessOlder', find: 'isOlder ? undefined : denial', replace: 'denial' }],
    unitTest: {
      file: 'partition/customers.test.ts',
      why: 'a node that learns of another record asks again, so that only time is lost, and records change all the time',
    },
  },
  {
    id: 'CU10',
    bug: 'a snapshot that is installed brings no customer records',
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
    bug: 'another partition denies by the old tier of a customer, and the node does not ask for the current tier',
    law: 'a customer is denied only by a limit of its tier',
    edits: [
      {
        in: 'MatchedRequests.#refuse',
        find: 'else this.#askRecord(customer, [first], { asking, ruleSet, goOn: deny });',
        replace: 'else deny();',
      },
    ],
    unitTest: {
      file: 'matching/customers.test.ts',
      why: 'rare: in one of some 300 seeds another partition denies a customer whose tier the node has wrong',
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
    bug: 'the end of a block counts from the last change before its entry, not from the entry',
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
    bug: 'a customer is shown as blocked after the block has ended',
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
    bug: 'a sweep forgets a customer whose block has not ended',
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
    bug: 'usage that an operator sets in the millisecond in which a window comes into force also inherits older grants',
    edits: [
      {
        in: 'KeyTable.setUsed',
        find: 'Math.max(applied.timeMillis, this.sinceMillis)',
        replace: 'applied.timeMillis',
      },
    ],
    unitTest: {
      file: 'limiter/set-used.test.ts',
      why: 'hardly any world changes the rules and a usage in the same millisecond of group time',
    },
  },
  {
    id: 'CU18',
    bug: 'an operator may set a usage above the limit',
    edits: [
      {
        in: 'setUsed',
        find: "if (used > usedMax) return { kind: 'above', ruleId, usedMax };",
        replace: '',
      },
    ],
  },
];
