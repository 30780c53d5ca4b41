/**
 * Checks the bytes of a batch: every shape, length and range. Afterwards a cursor can walk along them without any
 * check.
 */

import {
  ASKED_DIGEST_MAX,
  ATTEMPT_MAX,
  COST_MAX,
  invalidIn,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
} from '../../api/request.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import {
  type AllowBatch,
  BATCH_REQUESTS_MAX,
  BatchCursor,
  COLUMN,
  COLUMNS,
  COLUMNS_OF_ONE,
  KEYS_ALONE,
  requestsOf,
} from './batch.ts';
import { CommandDecodeError } from './command-decode-error.ts';

/** Reads a batch after its kind byte, to the end of the entry. @throws CommandDecodeError */
export function readBatch(input: ByteReader): AllowBatch {
  const columns = input.integer('columns', KEYS_ALONE, (1 << COLUMNS) - 1);
  const size = input.integer('number of requests', 1, BATCH_REQUESTS_MAX);
  const ruleIds = readRuleIds(input, size);
  if ((columns & KEYS_ALONE) === 0) throw new CommandDecodeError('requests without keys');
  const starts: number[] = Array.from({ length: COLUMNS }, () => 0);
  for (let column = 0; columns >> column !== 0; column += 1) {
    if ((columns & (1 << column)) === 0) continue;
    starts[column] = input.position;
    if (!readColumn(input, column, size, ruleIds.length))
      throw new CommandDecodeError(`column ${column} has no value`);
  }
  if (!input.isAtEnd) throw new CommandDecodeError(`${input.bytes.length - input.position} bytes left over`);
  const batch = { size, ruleIds, bytes: input.bytes, columns, starts };
  if ((columns & ~COLUMNS_OF_ONE) !== 0) checkRows(batch);
  return batch;
}

/** Returns whether any row has a value. */
function readColumn(input: ByteReader, column: number, size: number, rules: number): boolean {
  let said = 0;
  switch (column) {
    case COLUMN.key:
      for (let i = 0; i < size; i += 1) said |= readKey(input, 'user id', 1, KEY_BYTES_MAX);
      break;
    case COLUMN.rule:
      for (let i = 0; i < size; i += 1) said |= input.integer('rule', 0, rules - 1);
      break;
    case COLUMN.cost:
      for (let i = 0; i < size; i += 1) said |= input.integer('cost less 1', 0, COST_MAX - 1);
      break;
    case COLUMN.timestamp:
      for (let i = 0; i < size; i += 1)
        if (input.integer('timestamp plus 1', 0, TIMESTAMP_MILLIS_MAX + 1) > 0) said = 1;
      break;
    case COLUMN.requestId:
      for (let i = 0; i < size; i += 1) said |= readKey(input, 'request id', 0, REQUEST_ID_BYTES_MAX);
      break;
    case COLUMN.askedDigest:
      for (let i = 0; i < size; i += 1) if (input.integer('asked digest', 0, ASKED_DIGEST_MAX) > 0) said = 1;
      break;
    case COLUMN.further:
      return readFurther(input, size);
    case COLUMN.attempt:
      for (let i = 0; i < size; i += 1) if (input.integer('attempt', 0, ATTEMPT_MAX) > 0) said = 1;
      break;
    case COLUMN.guard:
      for (let i = 0; i < size; i += 1) said |= readGuard(input);
      break;
    default:
      for (let i = 0; i < size; i += 1) if (input.flag('flag')) said = 1;
  }
  return said !== 0;
}

/** The further limits of requests do not overlap, and all of them are present. */
function readFurther(input: ByteReader, size: number): boolean {
  let isSaid = false;
  for (let i = 0, left = 0; i < size; i += 1) {
    const further = input.integer('further limits', 0, left > 0 ? 0 : size - 1 - i);
    left = left > 0 ? left - 1 : further;
    isSaid ||= further > 0;
  }
  return isSaid;
}

function readGuard(input: ByteReader): number {
  const length = readKey(input, 'guarded key', 0, KEY_BYTES_MAX);
  if (length > 0) input.integer('version of a record');
  return length;
}

/** Checks that the columns of each row fit together. */
function checkRows(batch: AllowBatch): void {
  const cursor = new BatchCursor();
  cursor.open(batch);
  for (let i = 0; i < batch.size; i += 1) {
    const isFurther = cursor.further > 0;
    cursor.next();
    if (!isSound(cursor, isFurther))
      throw new CommandDecodeError(`row ${i} has values that do not belong together`);
  }
  if ((batch.columns & (1 << COLUMN.further)) !== 0) checkLimits(batch);
}

function isSound(row: BatchCursor, isFurther: boolean): boolean {
  const { isRefund, hasRequestId, askedDigest, further, ifRemembered, isSettled } = row;
  const isMatched = askedDigest !== undefined;
  const isAttempt = row.attempt !== undefined;
  if (!isFurther && !isRefund)
    return (
      (isMatched || further === 0) &&
      (!ifRemembered || (isMatched && hasRequestId && further === 0 && !isSettled)) &&
      (!isAttempt || (isMatched && hasRequestId && !ifRemembered))
    );
  const hasMore = isMatched || isAttempt || ifRemembered || row.hasGuard || row.timestampMillis !== undefined;
  if (hasMore || (isRefund && (isFurther || isSettled))) return false;
  return isFurther ? !hasRequestId : hasRequestId && further === 0 && row.ruleIndex === 0 && row.cost === 1;
}

/** A request under several limits names each of them, and none twice. */
function checkLimits(batch: AllowBatch): void {
  for (const request of requestsOf(batch)) {
    const invalid = request.ask === undefined && request.further !== undefined && invalidIn(request);
    if (invalid) throw new CommandDecodeError(invalid.message);
  }
}

function readRuleIds(input: ByteReader, size: number): readonly string[] {
  const count = input.integer('number of rule ids', 1, size);
  const ruleIds = new Set<string>();
  for (let i = 0; i < count; i += 1) {
    const ruleId = input.text('rule id', 0, RULE_ID_BYTES_MAX);
    if (ruleIds.has(ruleId)) throw new CommandDecodeError('duplicate rule id');
    ruleIds.add(ruleId);
  }
  return [...ruleIds];
}

/** Reads a text that does not begin with a byte order mark (see `isBoundedText`). Returns its length in bytes. */
function readKey(input: ByteReader, name: string, minBytes: number, maxBytes: number): number {
  const length = input.textBytes(name, minBytes, maxBytes);
  const from = input.position - length;
  const { bytes } = input;
  const isMarked = bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf;
  if (isMarked && length >= 3) throw new CommandDecodeError(`${name} begins with a byte order mark`);
  return length;
}
