/**
 * Checks the bytes of a batch: every shape, length and range, so that a cursor may walk along them without a look. It decides
 * nothing.
 */

import {
  ASKED_DIGEST_MAX,
  COST_MAX,
  invalidIn,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
} from '../../api/request.ts';
import type { ByteReader } from '../state/byte-stream.ts';
import {
  type AllowBatch,
  BATCH_REQUESTS_MAX,
  BatchCursor,
  GUARDED,
  HAS,
  HAS_MAX,
  HAS_OF_REFUND,
  requestAt,
  rowsOf,
} from './batch.ts';
import { CommandDecodeError } from './command-decode-error.ts';
import {
  type BatchKind,
  KIND_GUARDED,
  KIND_GUARDED_REFUNDS,
  KIND_JOINT_REFUNDS,
  KIND_REFUNDS,
  kindOf,
  mayBeJoint,
} from './kinds.ts';

/** What a request has that asks for what is remembered. */
const REMEMBERED = HAS.ifRemembered | HAS.askedDigest | HAS.requestId;

/** Behind the kind, to the end. @throws CommandDecodeError */
export function readBatch(input: ByteReader, kind: BatchKind): AllowBatch {
  const size = input.integer('number of requests', 1, BATCH_REQUESTS_MAX);
  const ruleIds = readRuleIds(input, size);
  const rowsAt = input.position;
  const has = { refunds: false, joint: false, guarded: false };
  for (let i = 0; i < size; i += 1) {
    let row = input.byte();
    if (row === GUARDED) {
      has.guarded = true;
      row = readGuard(input, kind);
    }
    if (row > HAS_MAX) {
      checkKind(row, kind);
      if (row === HAS_OF_REFUND) has.refunds = true;
      else has.joint = true;
    }
    readKey(input, 'user id', KEY_BYTES_MAX);
    if ((row & HAS.rule) !== 0) input.integer('rule', 1, ruleIds.length - 1);
    if ((row & HAS.cost) !== 0) input.integer('cost', 2, COST_MAX);
    if ((row & HAS.timestamp) !== 0) input.integer('timestamp', 0, TIMESTAMP_MILLIS_MAX);
    if ((row & HAS.requestId) !== 0) readKey(input, 'request id', REQUEST_ID_BYTES_MAX);
    if ((row & HAS.askedDigest) !== 0) input.integer('what was asked', 1, ASKED_DIGEST_MAX);
  }
  if (kindOf(has) !== kind) throw new CommandDecodeError(`no request is of kind ${kind}`);
  // Whoever walks along the limits of a request goes on as long as there are some.
  if (!input.atEnd) throw new CommandDecodeError(`${input.chunk.length - input.position} bytes left over`);
  const batch = { size, ruleIds, bytes: input.chunk, rowsAt };
  if (has.joint) checkLimits(batch);
  return batch;
}

/** Returns what the request behind it has. */
function readGuard(input: ByteReader, kind: BatchKind): number {
  if (kind !== KIND_GUARDED && kind !== KIND_GUARDED_REFUNDS)
    throw new CommandDecodeError(`a request has ${GUARDED}`);
  readKey(input, 'guarded key', KEY_BYTES_MAX);
  input.integer('version of a record', 0, Number.MAX_SAFE_INTEGER);
  const row = input.byte();
  if (row === GUARDED || row === HAS_OF_REFUND || (row & HAS.further) !== 0)
    throw new CommandDecodeError(`what is guarded has ${row}`);
  return row;
}

const KINDS_WITH_REFUNDS: readonly number[] = [KIND_REFUNDS, KIND_JOINT_REFUNDS, KIND_GUARDED_REFUNDS];

function checkKind(has: number, kind: BatchKind): void {
  if (has === HAS_OF_REFUND && KINDS_WITH_REFUNDS.includes(kind)) return;
  const mayHave = (has & HAS.further) === 0 ? HAS_MAX | HAS.askedDigest : HAS.further | HAS.rule | HAS.cost;
  const isJoint = mayBeJoint(kind);
  if (isJoint && (has & REMEMBERED) === REMEMBERED && (has & ~(REMEMBERED | HAS_MAX)) === 0) return;
  if (!isJoint || (has & ~mayHave) !== 0) throw new CommandDecodeError(`a request has ${has}`);
}

/** Of each request that is under several: that it says what was asked, and that each is named, and none is there twice. */
function checkLimits(batch: AllowBatch): void {
  const cursor = new BatchCursor();
  cursor.open(batch);
  for (let rows = 0; rows < batch.size;) {
    if (cursor.goesOn) throw new CommandDecodeError('a further limit of nothing');
    cursor.next();
    const isAlone = !cursor.goesOn;
    const { askedDigest } = cursor;
    const request = requestAt(batch, cursor);
    rows += rowsOf(request);
    if (request.ask !== undefined || isAlone) continue;
    if (askedDigest === undefined) throw new CommandDecodeError('several limits of nobody knows what');
    const invalid = invalidIn(request);
    if (invalid !== undefined) throw new CommandDecodeError(invalid.message);
  }
}

function readRuleIds(input: ByteReader, size: number): readonly string[] {
  const count = input.integer('number of rule ids', 1, size);
  const ruleIds = new Set<string>();
  for (let i = 0; i < count; i += 1) {
    const ruleId = input.text('rule id', RULE_ID_BYTES_MAX, 0);
    if (ruleIds.has(ruleId)) throw new CommandDecodeError('a rule id twice');
    ruleIds.add(ruleId);
  }
  return [...ruleIds];
}

/** No byte order mark may stand in front: see `isBoundedText`. */
function readKey(input: ByteReader, name: string, maxBytes: number): void {
  const length = input.textBytes(name, 1, maxBytes);
  const from = input.position - length;
  const { chunk } = input;
  const isMarked = chunk[from] === 0xef && chunk[from + 1] === 0xbb && chunk[from + 2] === 0xbf;
  if (isMarked && length >= 3) throw new CommandDecodeError(`${name} begins with a byte order mark`);
}
