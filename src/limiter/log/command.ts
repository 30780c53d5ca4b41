/**
 * The commands of the state machine and their bytes in a log entry: a kind byte, then the fields of that kind. The
 * format is on disk and on other nodes, so a new meaning needs a new kind number; an existing one never changes.
 */

import type { CustomerRequest } from '../../api/customer.ts';
import { RULE_ID_BYTES_MAX } from '../../api/request.ts';
import { RULE_INTEGERS, ruleTableOf, ruleValues, TABLE_INTEGERS, tableValues } from '../rule-form.ts';
import { InvalidRuleError, RULES_MAX, type RuleTable } from '../rules.ts';
import { ByteReader } from '../../bytes/byte-reader.ts';
import { ByteWriter } from '../../bytes/byte-writer.ts';
import { UTC_AHEAD_MILLIS_MAX } from '../state/utc-steps.ts';
import { type AllowBatch, COLUMN } from './batch.ts';
import { readBatch } from './batch-reader.ts';
import { CommandDecodeError } from './command-decode-error.ts';
import { readCustomers } from './customer-entry.ts';
import {
  KIND_BATCH,
  KIND_CUSTOMERS,
  KIND_HISTORY_BEGINS,
  KIND_HISTORY_LOST,
  KIND_RULES,
  KIND_SWEEP,
  KIND_UTC,
} from './kinds.ts';

/** A command as it is applied. */
export type Command =
  | { readonly type: 'rules'; readonly table: RuleTable }
  | { readonly type: 'allow'; readonly batch: AllowBatch }
  /** Forgets some idle entries. Grants do that as well, but a full state may never get another grant. */
  | { readonly type: 'sweep' }
  /** Commands of operators about customers. */
  | { readonly type: 'customers'; readonly requests: readonly CustomerRequest[] }
  /**
   * Part of the history is missing: every key counts as full until `historyBegins`, and for one window after it.
   */
  | { readonly type: 'historyLost' }
  /** The first leader after that says that the group runs again. Carries its wall clock. */
  | { readonly type: 'historyBegins'; readonly wallMillis: number }
  /** How far UTC is ahead of group time, by the wall clocks of a majority. */
  | { readonly type: 'utc'; readonly aheadMillis: number };

export { CommandDecodeError };

const SWEEP: Command = { type: 'sweep' };
const HISTORY_LOST: Command = { type: 'historyLost' };
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/** Reused for all entries. */
const input = new ByteReader((problem) => new CommandDecodeError(problem));

/** Encodes a validated rule table. */
export function encodeRules(table: RuleTable): Uint8Array {
  const out = new ByteWriter();
  out.byte(KIND_RULES);
  for (const value of tableValues(table)) out.integer(value);
  out.integer(table.rules.length);
  for (const rule of table.rules) {
    const [id, ...integers] = ruleValues(rule);
    out.text(id, RULE_ID_BYTES_MAX);
    for (const value of integers) out.integer(value);
  }
  return out.take();
}

/** Encodes the command `sweep`. */
export function encodeSweep(): Uint8Array {
  return Uint8Array.of(KIND_SWEEP);
}

/** Encodes the command `historyLost`. */
export function encodeHistoryLost(): Uint8Array {
  return Uint8Array.of(KIND_HISTORY_LOST);
}

/** @param wallMillis the leader's wall clock, a safe integer >= 0 */
export function encodeHistoryBegins(wallMillis: number): Uint8Array {
  const out = new ByteWriter();
  out.byte(KIND_HISTORY_BEGINS);
  out.integer(wallMillis);
  return out.take();
}

/** @param aheadMillis how far UTC is ahead of group time, 0 to `UTC_AHEAD_MILLIS_MAX` */
export function encodeUtc(aheadMillis: number): Uint8Array {
  const out = new ByteWriter();
  out.byte(KIND_UTC);
  out.integer(aheadMillis);
  return out.take();
}

/**
 * May the command take long to apply? Refunds search all grants of their key, resets all rules. `data` need not be
 * valid.
 */
export function mayBeSlow(data: Uint8Array): boolean {
  const kind = data[0];
  const columns = data[1] ?? 0;
  return kind === KIND_CUSTOMERS || (kind === KIND_BATCH && (columns & (1 << COLUMN.refund)) !== 0);
}

/**
 * Decodes one command. All shapes, lengths and ranges are checked.
 *
 * @throws CommandDecodeError unless `data` is exactly one complete, valid command
 */
export function decodeCommand(data: Uint8Array): Command {
  input.load(data);
  const command = readCommand();
  if (!input.isAtEnd) throw new CommandDecodeError(`${data.length - input.position} bytes left over`);
  return command;
}

function readCommand(): Command {
  const kind = input.byte();
  switch (kind) {
    case KIND_BATCH:
      return { type: 'allow', batch: readBatch(input) };
    case KIND_CUSTOMERS:
      return { type: 'customers', requests: readCustomers(input) };
    case KIND_RULES:
      return { type: 'rules', table: readTable() };
    case KIND_SWEEP:
      return SWEEP;
    case KIND_HISTORY_LOST:
      return HISTORY_LOST;
    case KIND_HISTORY_BEGINS:
      return { type: 'historyBegins', wallMillis: input.integer('wall clock', 0, INTEGER_MAX) };
    case KIND_UTC:
      return { type: 'utc', aheadMillis: input.integer('UTC ahead of group time', 0, UTC_AHEAD_MILLIS_MAX) };
    default:
      throw new CommandDecodeError(`unknown kind ${kind}`);
  }
}

function readTable(): RuleTable {
  const values = Array.from({ length: TABLE_INTEGERS }, () =>
    input.integer('value of the rule table', 0, INTEGER_MAX),
  );
  const count = input.integer('number of rules', 1, RULES_MAX);
  const rules: (readonly unknown[])[] = [];
  for (let i = 0; i < count; i += 1) {
    const rule: unknown[] = [input.text('rule id', 1, RULE_ID_BYTES_MAX)];
    while (rule.length <= RULE_INTEGERS) rule.push(input.integer('value of a rule', 0, INTEGER_MAX));
    rules.push(rule);
  }
  try {
    return ruleTableOf(values, rules);
  } catch (error) {
    if (error instanceof InvalidRuleError) throw new CommandDecodeError(error.message);
    throw error;
  }
}
