/**
 * The commands of the state machine and their form in a log entry: MessagePack, positional arrays.
 * The form is on disk and on other nodes: a new meaning needs a new kind number, never a changed one.
 */

import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import {
  COST_MAX,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
} from '../../api/request.ts';
import { Packr, Unpackr } from 'msgpackr';
import { type AllowBatch, BATCH_REQUESTS_MAX } from './batch.ts';
import { messagePackProblem } from './message-pack.ts';
import { RULE_INTEGERS, ruleValues, ruleTableOf, TABLE_INTEGERS, tableValues } from '../rule-form.ts';
import { DEFAULT_RULE, InvalidRuleError, type RuleTable } from '../rules.ts';

export type Command =
  | { readonly type: 'rules'; readonly table: RuleTable }
  | { readonly type: 'allow'; readonly batch: AllowBatch }
  /** Forgets some of what is idle. Grants do that too, on their way; a state without room may get none. */
  | { readonly type: 'sweep' };

/** Bytes are not a command. Met in a committed entry, this means damage: the replica must stop. */
export class CommandDecodeError extends Error {
  override readonly name = 'CommandDecodeError';
  readonly code = 'COMMAND_DECODE';

  constructor(problem: string) {
    super(`not a limiter command: ${problem}`);
  }
}

const KIND_ALLOW = 1;
const KIND_RULES = 3;
const KIND_SWEEP = 4;

const packr = new Packr({ useRecords: false });
const unpackr = new Unpackr({ useRecords: false });

/** Encodes a command that was built by `AllowBatchBuilder` or holds a validated rule table. */
export function encodeCommand(command: Command): Uint8Array {
  // The packer hands out parts of a large shared buffer; an entry kept for long must not keep all of it alive.
  return new Uint8Array(packr.pack(positional(command)));
}

/**
 * Decodes one command. All shapes, lengths and ranges are checked.
 *
 * @throws CommandDecodeError when `data` is anything else than one complete, valid command
 */
export function decodeCommand(data: Uint8Array): Command {
  const problem = messagePackProblem(data);
  if (problem !== undefined) throw new CommandDecodeError(problem);
  let value: unknown;
  try {
    value = unpackr.unpack(data);
  } catch (error) {
    throw new CommandDecodeError(error instanceof Error ? error.message : String(error));
  }
  if (!Array.isArray(value)) throw new CommandDecodeError('the outermost value is not an array');
  const fields: readonly unknown[] = value;
  switch (fields[0]) {
    case KIND_ALLOW:
      return { type: 'allow', batch: decodeBatch(fields) };
    case KIND_RULES:
      return { type: 'rules', table: decodeTable(fields) };
    case KIND_SWEEP:
      if (fields.length !== 1) throw new CommandDecodeError('a sweep with columns');
      return { type: 'sweep' };
    default:
      throw new CommandDecodeError(`unknown kind ${typeof fields[0] === 'number' ? fields[0] : ''}`);
  }
}

function positional(command: Command): readonly unknown[] {
  switch (command.type) {
    case 'allow': {
      const { userIds, ruleIds, ruleIndexes, costs, timestampsMillis, requestIds } = command.batch;
      return [
        KIND_ALLOW,
        userIds,
        ruleIds,
        ruleIndexes ?? null,
        costs ?? null,
        timestampsMillis ?? null,
        requestIds ?? null,
      ];
    }
    case 'rules':
      return [KIND_RULES, ...tableValues(command.table), command.table.rules.map(ruleValues)];
    case 'sweep':
      return [KIND_SWEEP];
    default: {
      const never: never = command;
      return never;
    }
  }
}

function decodeBatch(fields: readonly unknown[]): AllowBatch {
  if (fields.length !== 7) throw new CommandDecodeError(`${fields.length} columns instead of 7`);
  const [, userIds, ruleIds, ruleIndexes, costs, timestampsMillis, requestIds] = fields;
  if (!isColumn(userIds, isUserId) || userIds.length === 0 || userIds.length > BATCH_REQUESTS_MAX) {
    throw new CommandDecodeError('bad user ids');
  }
  const size = userIds.length;
  if (!isColumn(ruleIds, isRuleId) || ruleIds.length === 0 || ruleIds.length > size) {
    throw new CommandDecodeError('bad rule ids');
  }
  if (ruleIds.length > 1 && new Set(ruleIds).size !== ruleIds.length) {
    throw new CommandDecodeError('a rule id twice');
  }
  const isRuleIndex = (value: unknown): value is number => isBoundedInteger(value, 0, ruleIds.length - 1);
  return {
    userIds,
    ruleIds,
    ...(ruleIndexes !== null && { ruleIndexes: column(ruleIndexes, size, isRuleIndex, 'rule indexes') }),
    ...(costs !== null && { costs: column(costs, size, isCost, 'costs') }),
    ...(timestampsMillis !== null && {
      timestampsMillis: column(timestampsMillis, size, isTimestamp, 'timestamps'),
    }),
    ...(requestIds !== null && { requestIds: column(requestIds, size, isRequestId, 'request ids') }),
  };
}

function decodeTable(fields: readonly unknown[]): RuleTable {
  const values = fields.slice(1, -1);
  const rules: unknown = fields.at(-1);
  if (values.length !== TABLE_INTEGERS || !Array.isArray(rules))
    throw new CommandDecodeError('not a rule table');
  if (!rules.every(isRule)) throw new CommandDecodeError('not a rule');
  try {
    return ruleTableOf(values, rules);
  } catch (error) {
    if (error instanceof InvalidRuleError) throw new CommandDecodeError(error.message);
    throw error;
  }
}

function isRule(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length === 1 + RULE_INTEGERS;
}

function column<T>(
  value: unknown,
  size: number,
  isElement: (element: unknown) => element is T,
  name: string,
): readonly T[] {
  if (!isColumn(value, isElement) || value.length !== size) throw new CommandDecodeError(`bad ${name}`);
  return value;
}

function isColumn<T>(value: unknown, isElement: (element: unknown) => element is T): value is readonly T[] {
  if (!Array.isArray(value)) return false;
  const elements: readonly unknown[] = value;
  for (let i = 0; i < elements.length; i += 1) if (!isElement(elements[i])) return false;
  return true;
}

function isUserId(value: unknown): value is string {
  return isBoundedText(value, KEY_BYTES_MAX);
}

function isRuleId(value: unknown): value is string {
  return value === DEFAULT_RULE || isBoundedText(value, RULE_ID_BYTES_MAX);
}

function isCost(value: unknown): value is number {
  return isBoundedInteger(value, 1, COST_MAX);
}

function isTimestamp(value: unknown): value is number | null {
  return value === null || isBoundedInteger(value, 0, TIMESTAMP_MILLIS_MAX);
}

function isRequestId(value: unknown): value is string | null {
  return value === null || isBoundedText(value, REQUEST_ID_BYTES_MAX);
}
