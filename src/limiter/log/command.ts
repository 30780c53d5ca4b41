/**
 * The commands of the state machine and their form in a log entry: a kind, and what belongs to it.
 * The form is on disk and on other nodes: a new meaning needs a new kind number, never a changed one.
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

export type Command =
  | { readonly type: 'rules'; readonly table: RuleTable }
  | { readonly type: 'allow'; readonly batch: AllowBatch }
  /** Forgets some of what is idle. Grants do that too, on their way; a state without room may get none. */
  | { readonly type: 'sweep' }
  /** What operators say of keys. */
  | { readonly type: 'customers'; readonly requests: readonly CustomerRequest[] }
  /** A part of what happened before is missing: everybody counts as saturated until `historyBegins`, and a window longer. */
  | { readonly type: 'historyLost' }
  /** The first leader since then says that the group runs again, and its wall clock. */
  | { readonly type: 'historyBegins'; readonly wallMillis: number }
  /** UTC is so much ahead of group time, by the wall clocks of a majority. */
  | { readonly type: 'utc'; readonly aheadMillis: number };

export { CommandDecodeError };

const SWEEP: Command = { type: 'sweep' };
const HISTORY_LOST: Command = { type: 'historyLost' };
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/** Reads one entry at a time. */
const input = new ByteReader((problem) => new CommandDecodeError(problem));

/** The form of a validated rule table. */
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

export function encodeSweep(): Uint8Array {
  return Uint8Array.of(KIND_SWEEP);
}

export function encodeHistoryLost(): Uint8Array {
  return Uint8Array.of(KIND_HISTORY_LOST);
}

/** @param wallMillis a safe integer >= 0 */
export function encodeHistoryBegins(wallMillis: number): Uint8Array {
  const out = new ByteWriter();
  out.byte(KIND_HISTORY_BEGINS);
  out.integer(wallMillis);
  return out.take();
}

/** @param aheadMillis 0 to `UTC_AHEAD_MILLIS_MAX` */
export function encodeUtc(aheadMillis: number): Uint8Array {
  const out = new ByteWriter();
  out.byte(KIND_UTC);
  out.integer(aheadMillis);
  return out.take();
}

/**
 * Whether a command, of which nothing was checked yet, may take long to apply: refunds look through what their keys were granted,
 * resets through all rules.
 */
export function mayBeSlow(data: Uint8Array): boolean {
  const kind = data[0];
  const columns = data[1] ?? 0;
  return kind === KIND_CUSTOMERS || (kind === KIND_BATCH && (columns & (1 << COLUMN.refund)) !== 0);
}

/**
 * Decodes one command. All shapes, lengths and ranges are checked.
 *
 * @throws CommandDecodeError when `data` is anything else than one complete, valid command
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
      return { type: 'utc', aheadMillis: input.integer('lag of group time', 0, UTC_AHEAD_MILLIS_MAX) };
    default:
      throw new CommandDecodeError(`unknown kind ${kind}`);
  }
}

function readTable(): RuleTable {
  const values = Array.from({ length: TABLE_INTEGERS }, () =>
    input.integer('a value of the rules', 0, INTEGER_MAX),
  );
  const count = input.integer('number of rules', 1, RULES_MAX);
  const rules: (readonly unknown[])[] = [];
  for (let i = 0; i < count; i += 1) {
    const rule: unknown[] = [input.text('rule id', 1, RULE_ID_BYTES_MAX)];
    while (rule.length <= RULE_INTEGERS) rule.push(input.integer('a value of a rule', 0, INTEGER_MAX));
    rules.push(rule);
  }
  try {
    return ruleTableOf(values, rules);
  } catch (error) {
    if (error instanceof InvalidRuleError) throw new CommandDecodeError(error.message);
    throw error;
  }
}
