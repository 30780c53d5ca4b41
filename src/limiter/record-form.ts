/**
 * The byte form of customer records, the same in log entries, in snapshots and in answers to other nodes. A record may
 * need more than a few hundred bytes; the writer of a snapshot decides where it may be cut.
 */

import { invalidInCustomer } from '../api/customer.ts';
import {
  type CustomerRecord,
  type LimitOverride,
  OVERRIDES_MAX,
  TIER_BYTES_MAX,
} from '../api/customer-record.ts';
import { RULE_ID_BYTES_MAX } from '../api/request.ts';
import { LIMIT_MAX } from '../api/rule.ts';
import { CommandDecodeError } from './log/command-decode-error.ts';
import { ByteReader } from '../bytes/byte-reader.ts';
import { ByteWriter } from '../bytes/byte-writer.ts';

interface RecordedBlock {
  readonly isBlocked?: boolean | undefined;
  readonly blockedUntilMillis?: number | undefined;
}

interface Terms {
  readonly tier?: string | undefined;
  readonly overrides: CustomerRecord['overrides'];
}

/**
 * `millis` is a duration in a log entry and an end time in a record. It follows the byte `ENDS`; a block without an end
 * has none.
 */
export interface WrittenBlock {
  readonly isBlocked: boolean;
  readonly millis?: number | undefined;
}

const BLOCKED = 1;
const ENDS = 2;

/** Writes a block as one byte (0, `BLOCKED` or `ENDS`) and, if it ends, an integer. */
export function writeBlock(out: ByteWriter, { isBlocked, millis }: WrittenBlock): void {
  out.byte(isBlocked ? (millis === undefined ? BLOCKED : ENDS) : 0);
  if (isBlocked && millis !== undefined) out.integer(millis);
}

/** The inverse of `writeBlock`. */
export function readBlock(input: ByteReader): WrittenBlock {
  const form = input.integer('blocked', 0, ENDS);
  return form === ENDS
    ? { isBlocked: true, millis: input.integer('end of a block', 1) }
    : { isBlocked: form === BLOCKED };
}

/** Writes the block of a record or of a peek. `blockedUntilMillis` is a group time. */
export function writeBlockOf(out: ByteWriter, { isBlocked, blockedUntilMillis }: RecordedBlock): void {
  writeBlock(out, { isBlocked: isBlocked === true, millis: blockedUntilMillis });
}

/** The inverse of `writeBlockOf`. */
export function readBlockOf(input: ByteReader): Pick<CustomerRecord, 'isBlocked' | 'blockedUntilMillis'> {
  const { isBlocked, millis } = readBlock(input);
  return millis === undefined ? { isBlocked } : { isBlocked, blockedUntilMillis: millis };
}

/** Writes the part of a record before its overrides: tier and number of overrides. */
export function writeTermsHead(out: ByteWriter, { tier = '', overrides }: Terms): void {
  out.text(tier, TIER_BYTES_MAX);
  out.integer(overrides.length);
}

/** Writes one override: rule id, limit, burst (0 if it has none). */
export function writeOverride(out: ByteWriter, { ruleId, limit, burst = 0 }: LimitOverride): void {
  out.text(ruleId, RULE_ID_BYTES_MAX);
  out.integer(limit);
  out.integer(burst);
}

/** Reads the part of a record before its overrides. `tier` is '' if there is none; `count` overrides follow. */
export function readTermsHead(input: ByteReader): { readonly tier: string; readonly count: number } {
  return {
    tier: input.text('tier', 0, TIER_BYTES_MAX),
    count: input.integer('overrides', 0, OVERRIDES_MAX),
  };
}

/** The inverse of `writeOverride`. */
export function readOverride(input: ByteReader): LimitOverride {
  const ruleId = input.text('rule id', 1, RULE_ID_BYTES_MAX);
  const limit = input.integer('limit', 0, LIMIT_MAX);
  const burst = input.integer('burst', 0, LIMIT_MAX);
  return burst === 0 ? { ruleId, limit } : { ruleId, limit, burst };
}

/** The mistake in a decoded record beyond the ranges of its numbers; undefined if it is valid. */
export function problemOf(userId: string, { tier, overrides }: Terms): string | undefined {
  return invalidInCustomer({ ask: 'customer', userId, action: { type: 'put', tier, overrides } })?.message;
}

/** Encodes a record to send it to another node. */
export function encodeRecord(record: CustomerRecord): Uint8Array {
  const out = new ByteWriter();
  out.integer(record.version);
  writeBlockOf(out, record);
  writeTermsHead(out, record);
  for (const override of record.overrides) writeOverride(out, override);
  return out.take();
}

const reader = new ByteReader((problem) => new CommandDecodeError(problem));

/** The inverse of `encodeRecord`. @throws CommandDecodeError */
export function decodeRecord(bytes: Uint8Array): CustomerRecord {
  reader.load(bytes);
  const version = reader.integer('version', 0, Number.MAX_SAFE_INTEGER);
  const block = readBlockOf(reader);
  const { tier, count } = readTermsHead(reader);
  const overrides = Array.from({ length: count }, () => readOverride(reader));
  const record = { version, ...(tier !== '' && { tier }), overrides, ...block };
  const problem = reader.isAtEnd ? problemOf('*', record) : 'bytes left over';
  if (problem !== undefined) throw new CommandDecodeError(problem);
  return record;
}
