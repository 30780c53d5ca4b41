/**
 * The whole state of one limiter state machine, and its form as snapshot chunks. The body is canonical: equal
 * states have equal bytes, which is what the state hash is made of. It must not hold anything that is not a
 * function of the applied log: no capacities, bases or leftovers that a restored replica would not have.
 */

import type { AppliedPosition } from './decision.ts';
import { ByteReader, ByteWriter, Digest, InvalidSnapshotError } from './byte-stream.ts';
import { KeyTable } from './key-table.ts';
import { RequestMemory } from './request-memory.ts';
import {
  CLOCK_DRIFT_PPM_MAX,
  effectiveWindowMillis,
  InvalidRuleError,
  KEY_BYTES_MAX,
  LIMIT_MAX,
  REQUEST_ID_BYTES_MAX,
  REQUEST_ID_HORIZON_MILLIS_MAX,
  type Rule,
  RULE_ID_BYTES_MAX,
  RULES_MAX,
  type RuleTable,
  validateRuleTable,
  WINDOW_MILLIS_MAX,
} from './rules.ts';
import { LOG_WINDOW_MILLIS_MAX, SlidingLog } from './sliding-log.ts';

export interface LimiterState {
  /** The last applied command. Not part of the hash: a denied request moves it and must leave no other trace. */
  applied: AppliedPosition;
  /** Group time of the first accepted rule table; nothing can be granted before. */
  createdMillis: number;
  /** Group time of the last command that changed anything: a grant or a rule table. */
  changedMillis: number;
  table: RuleTable | undefined;
  /** One per rule id that is in the table or still has something recorded, in sweep order. */
  keyTables: KeyTable[];
  /** Where the sweep goes on: a place in `keyTables`, and a slot in that table (may be its size). */
  sweepTable: number;
  sweepSlot: number;
  memory: RequestMemory;
}

const FORMAT = 0x51_4c_02;
const RESERVED_RUNS_MAX = 1_024;
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
/** Text of a memory key: three ids and their lengths. */
const MEMORY_KEY_BYTES_MAX = RULE_ID_BYTES_MAX + KEY_BYTES_MAX + REQUEST_ID_BYTES_MAX + 16;

export function emptyState(): LimiterState {
  return {
    applied: { index: 0, term: 0, timeMillis: 0 },
    createdMillis: 0,
    changedMillis: 0,
    table: undefined,
    keyTables: [],
    sweepTable: 0,
    sweepSlot: 0,
    memory: new RequestMemory(),
  };
}

/** The hash of a state: 16 hexadecimal digits. O(state), without building the snapshot. */
export function hashState(state: LimiterState): string {
  const writer = new ByteWriter();
  writeBody(state, writer);
  return writer.digest.toString();
}

export function encodeState(state: LimiterState): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  const writer = new ByteWriter((chunk) => chunks.push(chunk));
  writeBody(state, writer);
  writer.integer(state.applied.index);
  writer.integer(state.applied.term);
  writer.integer(state.applied.timeMillis);
  writer.cut();
  const [a, b] = writer.digest.words();
  writer.word(a);
  writer.word(b);
  writer.cut();
  return chunks;
}

/** @throws InvalidSnapshotError */
export function decodeState(chunks: readonly Uint8Array[]): LimiterState {
  checkDigest(chunks);
  const reader = new ByteReader(chunks.slice(0, -1));
  const state = readBody(reader);
  state.applied = {
    index: reader.integer('applied index', 0, INTEGER_MAX),
    term: reader.integer('applied term', 0, INTEGER_MAX),
    timeMillis: reader.integer('applied time', state.changedMillis, INTEGER_MAX),
  };
  if (!reader.atEnd) throw new InvalidSnapshotError('bytes left over');
  return state;
}

function checkDigest(chunks: readonly Uint8Array[]): void {
  const last = chunks.at(-1);
  if (last === undefined || last.length !== 8) throw new InvalidSnapshotError('no digest at the end');
  const digest = new Digest();
  for (const chunk of chunks.slice(0, -1)) {
    if (chunk.length === 0) throw new InvalidSnapshotError('an empty chunk');
    digest.update(chunk);
  }
  const [a, b] = digest.words();
  const view = new DataView(last.buffer, last.byteOffset, last.byteLength);
  if (view.getUint32(0, true) !== a || view.getUint32(4, true) !== b) {
    throw new InvalidSnapshotError('the digest does not match');
  }
}

function writeBody(state: LimiterState, writer: ByteWriter): void {
  writer.integer(FORMAT);
  writer.integer(state.createdMillis);
  writer.integer(state.changedMillis);
  writeRuleTable(state.table, writer);
  writer.integer(state.keyTables.length);
  for (const keys of state.keyTables) writeKeyTable(keys, writer);
  writer.integer(state.sweepTable);
  writer.integer(state.sweepSlot);
  for (const grant of state.memory.unexpired(state.changedMillis)) {
    writer.byte(1);
    writer.text(grant.key);
    writer.integer(grant.expiresMillis);
    writer.integer(grant.term);
    writer.integer(grant.index);
    writer.integer(grant.timeMillis);
    writer.integer(grant.limit);
    writer.integer(grant.remaining);
    writer.integer(grant.retryAfterMillis);
    writer.integer(grant.resetMillis);
    writer.integer(grant.windowMillis);
  }
  writer.byte(0);
  writer.cut();
}

function readBody(reader: ByteReader): LimiterState {
  const state = emptyState();
  reader.integer('format', FORMAT, FORMAT);
  state.createdMillis = reader.integer('created time', 0, INTEGER_MAX);
  state.changedMillis = reader.integer('changed time', state.createdMillis, INTEGER_MAX);
  state.table = readRuleTable(reader);
  const tables = reader.integer('key tables', 0, INTEGER_MAX);
  const ids = new Set<string>();
  for (let i = 0; i < tables; i++) {
    const keys = readKeyTable(reader, state);
    if (ids.has(keys.rule.id)) throw new InvalidSnapshotError('a rule id twice');
    ids.add(keys.rule.id);
    state.keyTables.push(keys);
  }
  for (const rule of state.table?.rules ?? []) {
    if (!ids.has(rule.id)) throw new InvalidSnapshotError('a rule without its keys');
  }
  state.sweepTable = reader.integer('sweep table', 0, Math.max(0, tables - 1));
  state.sweepSlot = reader.integer('sweep slot', 0, state.keyTables[state.sweepTable]?.size ?? 0);
  readMemory(reader, state);
  return state;
}

function readMemory(reader: ByteReader, state: LimiterState): void {
  for (;;) {
    const more = reader.byte();
    if (more === 0) return;
    if (more !== 1) throw new InvalidSnapshotError('neither a request id nor the end of them');
    const key = reader.text('request id', MEMORY_KEY_BYTES_MAX);
    if (state.memory.find(key, 0) >= 0) throw new InvalidSnapshotError('a request id twice');
    state.memory.remember(
      key,
      reader.integer('expiry', state.changedMillis, INTEGER_MAX),
      reader.integer('term', 0, INTEGER_MAX),
      reader.integer('index', 0, INTEGER_MAX),
      reader.integer('time', 0, INTEGER_MAX),
      reader.integer('limit', 0, LIMIT_MAX),
      reader.integer('remaining', 0, LIMIT_MAX),
      reader.integer('retry after', 0, INTEGER_MAX),
      reader.integer('reset', 0, INTEGER_MAX),
      reader.integer('window', 1, WINDOW_MILLIS_MAX),
    );
  }
}

function writeRuleTable(table: RuleTable | undefined, writer: ByteWriter): void {
  writer.integer(table?.version ?? 0);
  if (table === undefined) return;
  writer.integer(table.requestIdHorizonMillis);
  writer.integer(table.clockDriftPpm);
  writer.integer(table.rules.length);
  for (const rule of table.rules) writeRule(rule, writer);
}

function readRuleTable(reader: ByteReader): RuleTable | undefined {
  const version = reader.integer('rule table version', 0, INTEGER_MAX);
  if (version === 0) return undefined;
  const requestIdHorizonMillis = reader.integer('horizon', 0, REQUEST_ID_HORIZON_MILLIS_MAX);
  const clockDriftPpm = reader.integer('drift', 0, CLOCK_DRIFT_PPM_MAX);
  const count = reader.integer('rules', 1, RULES_MAX);
  const rules: Rule[] = [];
  for (let i = 0; i < count; i++) rules.push(readRule(reader));
  try {
    return validateRuleTable({ version, requestIdHorizonMillis, clockDriftPpm, rules });
  } catch (error) {
    if (error instanceof InvalidRuleError) throw new InvalidSnapshotError(error.message);
    throw error;
  }
}

function writeRule(rule: Rule, writer: ByteWriter): void {
  writer.text(rule.id);
  writer.integer(rule.limit);
  writer.integer(rule.windowMillis);
  writer.byte(rule.clock === 'cluster' ? 1 : 0);
}

function readRule(reader: ByteReader): Rule {
  return {
    id: reader.text('rule id', RULE_ID_BYTES_MAX),
    limit: reader.integer('limit', 0, LIMIT_MAX),
    windowMillis: reader.integer('window', 1, WINDOW_MILLIS_MAX),
    clock: readFlag(reader) ? 'cluster' : 'request',
  };
}

function writeKeyTable(keys: KeyTable, writer: ByteWriter): void {
  writeRule(keys.rule, writer);
  writer.integer(keys.effectiveWindowMillis);
  writer.byte(keys.active ? 1 : 0);
  writer.byte(keys.eventTimed ? 1 : 0);
  writer.integer(keys.evictedThroughMillis);
  writer.integer(keys.size);
  for (let slot = 0; slot < keys.size; slot++) {
    const userId = keys.userIdAt(slot);
    const log = keys.logAt(slot);
    writer.text(userId);
    writer.integer(log.runCount);
    let previousMillis = 0;
    for (let i = 0; i < log.runCount; i++) {
      const millis = log.runMillis(i);
      writer.integer(millis - previousMillis);
      writer.integer(log.runCost(i));
      previousMillis = millis;
    }
    writer.integer(keys.madeMillisAt(slot));
  }
}

function readKeyTable(reader: ByteReader, state: LimiterState): KeyTable {
  const rule = readRule(reader);
  const windowMillis = reader.integer('effective window', rule.windowMillis, LOG_WINDOW_MILLIS_MAX);
  const keys = new KeyTable(rule, windowMillis, state.createdMillis);
  keys.active = readFlag(reader);
  checkCurrentRule(keys, state.table);
  keys.eventTimed = readFlag(reader);
  keys.evictedThroughMillis = reader.integer('evicted through', 0, state.changedMillis);
  const size = reader.integer('keys', 0, INTEGER_MAX);
  for (let slot = 0; slot < size; slot++) {
    const userId = reader.text('user id', KEY_BYTES_MAX);
    if (userId === '' || keys.get(userId) !== undefined) throw new InvalidSnapshotError('a bad user id');
    const log = readLog(reader);
    keys.add(userId, log, reader.integer('time of the last grant', 0, state.changedMillis));
  }
  return keys;
}

function readLog(reader: ByteReader): SlidingLog {
  const log = new SlidingLog();
  const runs = reader.integer('runs', 1, 0xffff_ffff);
  // A damaged count must not allocate: beyond this the log grows as it fills.
  log.reserve(Math.min(runs, RESERVED_RUNS_MAX));
  const firstMillis = reader.integer('first grant', 0, INTEGER_MAX);
  let millis = firstMillis;
  let recorded = 0;
  for (let i = 0; i < runs; i++) {
    if (i > 0) millis += reader.integer('time between grants', 1, LOG_WINDOW_MILLIS_MAX);
    const cost = reader.integer('cost', 1, 0xffff_ffff);
    recorded += cost;
    if (millis - firstMillis >= LOG_WINDOW_MILLIS_MAX || recorded > 0xffff_ffff) {
      throw new InvalidSnapshotError('grants that no window holds');
    }
    // The longest window prunes nothing: what was recorded comes back whole.
    log.grant(millis, cost, LOG_WINDOW_MILLIS_MAX, runs);
  }
  return log;
}

/** A key table must agree with the rule table it is read with. */
function checkCurrentRule(keys: KeyTable, table: RuleTable | undefined): void {
  const current = table?.rules.find((rule) => rule.id === keys.rule.id);
  if ((current !== undefined) !== keys.active) throw new InvalidSnapshotError('keys of a wrong rule');
  if (current === undefined || table === undefined) return;
  const agrees =
    current.limit === keys.rule.limit &&
    current.windowMillis === keys.rule.windowMillis &&
    current.clock === keys.rule.clock &&
    keys.effectiveWindowMillis === effectiveWindowMillis(current, table.clockDriftPpm);
  if (!agrees) throw new InvalidSnapshotError('keys of another version of their rule');
}

function readFlag(reader: ByteReader): boolean {
  const byte = reader.byte();
  if (byte > 1) throw new InvalidSnapshotError('a bad flag');
  return byte === 1;
}
