/**
 * Targets for log entries: limiter commands, which a replica must be able to apply if it accepts them, and group
 * configurations.
 */
import fc from 'fast-check';
import { decodeConfig, encodeConfig } from '../../../raft/membership.ts';
import { requestsOf } from '../../../src/limiter/log/batch.ts';
import {
  type Command,
  CommandDecodeError,
  decodeCommand,
  encodeRules,
  encodeSweep,
  encodeUtc,
} from '../../../src/limiter/log/command.ts';
import { LimiterStateMachine } from '../../../src/limiter/state-machine.ts';
import { validateRuleTable } from '../../../src/limiter/rules.ts';
import { entryOf, START } from '../../limiter/harness.ts';
import { type Outcome, promise, promiseSame, readOr, type Target } from '../target.ts';
import { batchedRequest, customerRequest, natural, table } from './made.ts';
import { encodeCustomers } from '../../../src/limiter/log/customer-entry.ts';

const RULES = validateRuleTable({
  version: 1,
  rules: [
    { id: 'default', limit: 5, windowMillis: 60_000 },
    { id: 'a', limit: 3, windowMillis: 1_000, meter: 'tokenBucket' },
    { id: 'ü', limit: 3, windowMillis: 1_000, meter: 'fixedWindow' },
  ],
});
/**
 * A new, small state for each input. It must stay small: a sweep command of one byte rewrites everything that the state
 * remembers, and its memory is compared with the size of the input.
 */
const APPLIED_MAX = 64;

let machine = new LimiterStateMachine();
let applied = APPLIED_MAX;

/** Applies the command to a state that has applied others before: every accepted command must be applicable. */
function apply(command: Command): void {
  if (applied >= APPLIED_MAX) {
    machine = new LimiterStateMachine();
    applied = 0;
    machine.apply(decodeCommand(encodeRules(RULES)), next());
  }
  machine.apply(command, next());
}

function next(): { index: number; term: number; timeMillis: number } {
  applied += 1;
  return { index: applied, term: 1, timeMillis: START + applied };
}

function runEntries(input: Buffer): Outcome {
  const read = readOr([CommandDecodeError], () => decodeCommand(input));
  if ('refused' in read) return read.refused;
  const command = read.value;
  if (command.type === 'allow') {
    const requests = requestsOf(command.batch);
    const again = decodeCommand(entryOf(requests));
    promise(again.type === 'allow', 'encoded requests are read as a batch again');
    promiseSame(requestsOf(again.batch), requests, 'requests again');
  }
  if (command.type === 'rules') {
    promiseSame(validateRuleTable(command.table), command.table, 'a sound table');
    promiseSame(decodeCommand(encodeRules(command.table)), command, 'rules again');
  }
  apply(command);
  return `read ${command.type}`;
}

function runConfigs(input: Buffer): Outcome {
  const config = decodeConfig(input);
  if (config === undefined) return 'refused: no sound configuration';
  promiseSame(decodeConfig(encodeConfig(config)), config, 'a configuration again');
  return 'read';
}

const ids = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });

export const LOG: readonly Target[] = [
  {
    name: 'log-entries',
    parser: 'log entries of the limiter',
    sound: fc.oneof(
      { weight: 6, arbitrary: fc.array(batchedRequest, { minLength: 1, maxLength: 6 }).map(entryOf) },
      { weight: 2, arbitrary: table.map(encodeRules) },
      {
        weight: 2,
        arbitrary: fc
          .uniqueArray(customerRequest, { minLength: 1, maxLength: 3, selector: (asked) => asked.userId })
          .map(encodeCustomers),
      },
      fc.constant(encodeSweep()),
      fc.nat(1e12).map(encodeUtc),
    ),
    bytesMax: 40_000,
    bytesPerByteMax: 1_024,
    run: runEntries,
  },
  {
    name: 'group-configs',
    parser: 'log entries with the members of a group',
    sound: fc
      .record({ epoch: natural, ids, learners: fc.nat(2) })
      .map(({ epoch, ids: [first = 1, ...rest], learners }) =>
        encodeConfig({
          epoch,
          voters: [first, ...rest.slice(learners)],
          outgoing: [],
          learners: rest.slice(0, learners),
        }),
      ),
    bytesMax: 4_096,
    bytesPerByteMax: 512,
    run: runConfigs,
  },
];
