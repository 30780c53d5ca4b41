/**
 * The form of the records of keys wherever they are written: in an entry, in a snapshot, in an answer to another node. Which
 * values, in which order; where one that needs more than a few hundred bytes may be cut is for whoever writes it.
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

/** `millis`: how long the block lasts in an entry, when it ends in a record. It follows the byte `ENDS`; a block without an end has none. */
export interface WrittenBlock {
  readonly isBlocked: boolean;
  readonly millis?: number | undefined;
}

const BLOCKED = 1;
const ENDS = 2;

export function writeBlock(out: ByteWriter, { isBlocked, millis }: WrittenBlock): void {
  out.byte(isBlocked ? (millis === undefined ? BLOCKED : ENDS) : 0);
  if (isBlocked && millis !== undefined) out.integer(millis);
}

export function readBlock(input: ByteReader): WrittenBlock {
  const form = input.integer('blocked', 0, ENDS);
  return form === ENDS
    ? { isBlocked: true, millis: input.integer('end of a block', 1) }
    : { isBlocked: form === BLOCKED };
}

/** That of a record or a look; `millis` is a group time. */
export function writeBlockOf(out: ByteWriter, { isBlocked, blockedUntilMillis }: RecordedBlock): void {
  writeBlock(out, { isBlocked: isBlocked === true, millis: blockedUntilMillis });
}

export function readBlockOf(input: ByteReader): Pick<CustomerRecord, 'isBlocked' | 'blockedUntilMillis'> {
  const { isBlocked, millis } = readBlock(input);
  return millis === undefined ? { isBlocked } : { isBlocked, blockedUntilMillis: millis };
}

/** Then its overrides follow, as many as it has. */
export function writeTermsHead(out: ByteWriter, { tier = '', overrides }: Terms): void {
  out.text(tier, TIER_BYTES_MAX);
  out.integer(overrides.length);
}

export function writeOverride(out: ByteWriter, { ruleId, limit, burst = 0 }: LimitOverride): void {
  out.text(ruleId, RULE_ID_BYTES_MAX);
  out.integer(limit);
  out.integer(burst);
}

/** `tier` is '' without one; `count` overrides follow. */
export function readTermsHead(input: ByteReader): { readonly tier: string; readonly count: number } {
  return {
    tier: input.text('tier', 0, TIER_BYTES_MAX),
    count: input.integer('overrides', 0, OVERRIDES_MAX),
  };
}

export function readOverride(input: ByteReader): LimitOverride {
  const ruleId = input.text('rule id', 1, RULE_ID_BYTES_MAX);
  const limit = input.integer('limit', 0, LIMIT_MAX);
  const burst = input.integer('burst', 0, LIMIT_MAX);
  return burst === 0 ? { ruleId, limit } : { ruleId, limit, burst };
}

/** What is wrong with a record that was read, beyond the bounds of its numbers; undefined: nothing. */
export function problemOf(userId: string, { tier, overrides }: Terms): string | undefined {
  return invalidInCustomer({ ask: 'customer', userId, action: { type: 'put', tier, overrides } })?.message;
}

/** As it travels to another node. */
export function encodeRecord(record: CustomerRecord): Uint8Array {
  const out = new ByteWriter();
  out.integer(record.version);
  writeBlockOf(out, record);
  writeTermsHead(out, record);
  for (const override of record.overrides) writeOverride(out, override);
  return out.take();
}

const reader = new ByteReader((problem) => new CommandDecodeError(problem));

/** @throws CommandDecodeError */
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
