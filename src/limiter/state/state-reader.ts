/**
 * Builds a state from the chunks of a snapshot. The bytes come from a disk or a network, so every length, range and
 * order is checked, nothing is allocated just because a number asks for it, and the digest is verified at the end.
 */

import { KEY_BYTES_MAX, REQUEST_ID_BYTES_MAX, RULE_ID_BYTES_MAX } from '../../api/request.ts';
import type { LimitOverride } from '../../api/customer-record.ts';
import { DRAIN_MILLIS_MAX } from '../meters/buckets.ts';
import { LOG_WINDOW_MILLIS_MAX } from '../meters/log-runs.ts';
import { problemOf, readBlockOf, readOverride, readTermsHead } from '../record-form.ts';
import { areSameRule, RULE_INTEGERS, ruleOf, ruleTableOf, TABLE_INTEGERS } from '../rule-form.ts';
import { effectiveWindowMillis, InvalidRuleError, RULES_MAX, type RuleTable, statedRule } from '../rules.ts';
import { Digest, InvalidSnapshotError, snapshotReader } from './snapshot-bytes.ts';
import type { KeyTable } from './key-table.ts';
import type { LimiterState } from './limiter-state.ts';
import { NONE } from './rows.ts';
import { ENTRIES_MAX } from './state-size.ts';
import { SNAPSHOT_FORMAT } from './state-writer.ts';
import { STATED_SUFFIX_BYTES_MAX } from './stated-tables.ts';
import { UTC_AHEAD_MILLIS_MAX, type UtcStep, UTC_STEPS_MAX } from './utc-steps.ts';
import type { Rule } from '../../api/rule.ts';

const INTEGER_MAX = Number.MAX_SAFE_INTEGER;

/** A generator that yields whenever it needs the next chunk. */
type Steps<T> = Generator<undefined, T>;

/** A state that is built from the chunks of a snapshot, next to the present one. */
export interface StateRestore {
  /** Adds the next chunk. @throws InvalidSnapshotError */
  add(chunk: Uint8Array): void;
  /** Call it after the last chunk. @throws InvalidSnapshotError if the chunks are not one complete, valid snapshot */
  complete(): void;
  /** Replaces the present state. Only after `complete`. */
  install(): void;
}

/** Reads one snapshot. */
export class StateReader {
  readonly #in = snapshotReader();
  readonly #digest = new Digest();
  readonly #state: LimiterState;
  readonly #steps: Iterator<undefined, LimiterState>;
  #result: LimiterState | undefined;

  /** @param state an empty state */
  constructor(state: LimiterState) {
    this.#state = state;
    this.#steps = this.#read();
    this.#steps.next();
  }

  /** Reads the next chunk. @throws InvalidSnapshotError */
  add(chunk: Uint8Array): void {
    if (chunk.length === 0) throw new InvalidSnapshotError('an empty chunk');
    if (this.#result !== undefined) throw new InvalidSnapshotError('bytes left over');
    this.#in.load(chunk);
    const { done, value } = this.#steps.next();
    if (!this.#in.isAtEnd) throw new InvalidSnapshotError('a chunk is too long');
    if (done === true) this.#result = value;
    else this.#digest.update(chunk);
  }

  /** The state, after all chunks were added. @throws InvalidSnapshotError if chunks are missing */
  complete(): LimiterState {
    if (this.#result === undefined) throw new InvalidSnapshotError('ends too early');
    return this.#result;
  }

  *#read(): Steps<LimiterState> {
    const state = this.#state;
    yield;
    const input = this.#in;
    input.integer('format', SNAPSHOT_FORMAT, SNAPSHOT_FORMAT);
    state.createdMillis = input.integer('created time', 0, INTEGER_MAX);
    state.changedMillis = input.integer('changed time', state.createdMillis, INTEGER_MAX);
    state.droppedThroughMillis = input.integer('dropped through', 0, state.changedMillis);
    this.#readLost();
    yield* this.#readUtcSteps();
    state.table = yield* this.#readRuleTable();
    yield* this.#readKeyTables();
    if (input.isAtEnd) yield;
    state.sweepTable = input.integer('sweep table', 0, Math.max(0, state.keyTables.length - 1));
    state.sweepSlot = input.integer('sweep slot', 0, state.keyTables[state.sweepTable]?.size ?? 0);
    const grants = input.integer('request ids', 0, ENTRIES_MAX);
    const records = input.integer('records', 0, ENTRIES_MAX);
    yield* this.#readMemory(grants);
    yield* this.#readRecords(records);
    yield;
    state.applied = {
      index: input.integer('applied index', 0, INTEGER_MAX),
      term: input.integer('applied term', 0, INTEGER_MAX),
      timeMillis: input.integer('applied time', state.changedMillis, INTEGER_MAX),
    };
    yield;
    const [a, b] = this.#digest.words();
    if (input.word() !== a || input.word() !== b) throw new InvalidSnapshotError('the digest does not match');
    return state;
  }

  #readLost(): void {
    const input = this.#in;
    const { lost, changedMillis } = this.#state;
    lost.throughIndex = input.integer('lost through', 0, INTEGER_MAX);
    const isLost = lost.throughIndex > 0;
    lost.sinceMillis = input.integer('lost since', 0, isLost ? Math.max(1, changedMillis) : 0);
    const isOver = lost.sinceMillis > 0;
    lost.stampsMillis = input.integer('timestamps of the lost history', 0, isOver ? INTEGER_MAX : 0);
  }

  *#readUtcSteps(): Steps<undefined> {
    const input = this.#in;
    const count = input.integer('steps of UTC', 1, UTC_STEPS_MAX);
    const steps: UtcStep[] = [];
    for (let i = 0; i < count; i += 1) {
      if (input.isAtEnd) yield;
      const before = steps.at(-1) ?? { fromMillis: -1, aheadMillis: -1 };
      steps.push({
        fromMillis: input.integer('time of a step', before.fromMillis + 1, INTEGER_MAX),
        aheadMillis: input.integer('UTC ahead of group time', before.aheadMillis + 1, UTC_AHEAD_MILLIS_MAX),
      });
    }
    this.#state.utc.restore(steps);
  }

  *#readRuleTable(): Steps<RuleTable | undefined> {
    const input = this.#in;
    const version = input.integer('rule table version', 0, INTEGER_MAX);
    if (version === 0) return undefined;
    const values = [version];
    while (values.length < TABLE_INTEGERS)
      values.push(input.integer('value of the rule table', 0, INTEGER_MAX));
    const count = input.integer('rules', 1, RULES_MAX);
    const rules: (readonly unknown[])[] = [];
    for (let i = 0; i < count; i += 1) {
      if (input.isAtEnd) yield;
      rules.push(this.#readRuleValues());
    }
    return valid(() => ruleTableOf(values, rules));
  }

  #readRuleValues(): readonly unknown[] {
    const values: unknown[] = [this.#in.text('rule id', 1, RULE_ID_BYTES_MAX)];
    while (values.length <= RULE_INTEGERS) values.push(this.#in.integer('value of a rule', 0, INTEGER_MAX));
    return values;
  }

  *#readKeyTables(): Steps<undefined> {
    const state = this.#state;
    const tables = this.#in.integer('key tables', 0, INTEGER_MAX);
    for (let i = 0; i < tables; i += 1) {
      if (this.#in.isAtEnd) yield;
      const values = this.#readRuleValues();
      const rule = valid(() => ruleOf(values));
      if (state.keyTables.some((keys) => keys.rule.id === rule.id && keys.keeps(rule)))
        throw new InvalidSnapshotError('duplicate rule id');
      yield* this.#readKeys(rule);
    }
    state.linkTables();
    for (const rule of state.table?.rules ?? []) {
      if (state.tableOf(rule.id) === undefined) throw new InvalidSnapshotError('a rule without its keys');
    }
  }

  *#readKeys(rule: Rule): Steps<undefined> {
    const input = this.#in;
    const state = this.#state;
    const windowMillis = input.integer('effective window', rule.windowMillis, LOG_WINDOW_MILLIS_MAX);
    const table = this.#tableOf(rule, windowMillis);
    table.active = input.flag('active');
    checkCurrentRule(table, state.table);
    table.eventTimed = input.flag('event timed');
    table.evictedThroughMillis = input.integer('evicted through', 0, state.changedMillis);
    table.ruledIndex = input.integer('entry of the rule', 0, INTEGER_MAX);
    table.sinceMillis = input.integer('in force since', 0, state.changedMillis + 1);
    const size = input.integer('keys', 0, ENTRIES_MAX);
    for (let slot = 0; slot < size; slot += 1) {
      if (input.isAtEnd) yield;
      const length = input.textBytes('user id', 1, KEY_BYTES_MAX + STATED_SUFFIX_BYTES_MAX);
      state.name.setBytes(input.bytes, input.position - length, input.position);
      const name = state.stated.storedName(table, state.name);
      if (name === undefined) throw new InvalidSnapshotError('a key without its stated rule');
      if (table.keys.find(name) !== NONE) throw new InvalidSnapshotError('duplicate user id');
      // A time after `changedMillis` is written as the time itself, not as an age: see `StateWriter`.
      const made = input.integer('age of the last grant', 0, state.changedMillis + DRAIN_MILLIS_MAX);
      const madeMillis = made > state.changedMillis ? made : state.changedMillis - made;
      table.add(name, madeMillis, input.integer('entry of the key', 0, INTEGER_MAX));
      let part = table.meter.read(slot, input, madeMillis, 0);
      while (part !== 0) {
        yield;
        part = table.meter.read(slot, input, madeMillis, part);
      }
    }
  }

  #tableOf(rule: Rule, windowMillis: number): KeyTable {
    const state = this.#state;
    if (statedRule(rule.id) === undefined) return state.addTable(rule, windowMillis);
    const shared = state.stated.sharedUnder(rule.id);
    if (shared === undefined) throw new InvalidSnapshotError('a stated rule with a table of its own');
    shared.follow(rule, windowMillis, 0);
    shared.isKept = true;
    state.keyTables.push(shared);
    return shared;
  }

  *#readRecords(size: number): Steps<undefined> {
    const input = this.#in;
    const { customers, name } = this.#state;
    for (let i = 0; i < size; i += 1) {
      if (input.isAtEnd) yield;
      const userId = input.text('user id', 1, KEY_BYTES_MAX);
      const version = input.integer('version', 1, INTEGER_MAX);
      const block = readBlockOf(input);
      const { tier, count } = readTermsHead(input);
      const overrides: LimitOverride[] = [];
      while (overrides.length < count) {
        if (input.isAtEnd) yield;
        overrides.push(readOverride(input));
      }
      name.set(userId);
      if (customers.find(name) !== undefined) throw new InvalidSnapshotError('duplicate record of a key');
      const record = { version, ...(tier !== '' && { tier }), overrides, ...block };
      const problem = problemOf(userId, record);
      if (problem !== undefined) throw new InvalidSnapshotError(problem);
      customers.put(name, userId, record);
    }
  }

  *#readMemory(count: number): Steps<undefined> {
    for (let i = 0; i < count; i += 1) {
      if (this.#in.isAtEnd) yield;
      this.#readGrant();
    }
  }

  #readGrant(): void {
    const input = this.#in;
    const { memory, changedMillis, requestKey: key, ruleId } = this.#state;
    key.text.clear();
    const userBytes = input.textBytes('user id', 1, KEY_BYTES_MAX);
    key.text.appendBytes(input.bytes, input.position - userBytes, input.position);
    // An empty request id means a further limit of the grant before, which may be forgotten already.
    const requestIdBytes = input.textBytes('request id', 0, REQUEST_ID_BYTES_MAX);
    key.text.appendBytes(input.bytes, input.position - requestIdBytes, input.position);
    key.seal(userBytes, requestIdBytes);
    // An expired grant may precede the newer one with the same id.
    if (requestIdBytes > 0 && memory.find(key, changedMillis) !== NONE)
      throw new InvalidSnapshotError('duplicate request id');
    const ruleIdBytes = input.textBytes('rule id', 1, RULE_ID_BYTES_MAX);
    ruleId.clear();
    ruleId.appendBytes(input.bytes, input.position - ruleIdBytes, input.position);
    ruleId.seal(0);
    memory.remember(key, ruleId).readFrom(input);
  }
}

/** Calls `read`. @throws InvalidSnapshotError instead of `InvalidRuleError` */
function valid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidRuleError) throw new InvalidSnapshotError(error.message);
    throw error;
  }
}

/** Checks that a key table agrees with the rule table of the snapshot. */
function checkCurrentRule(keys: KeyTable, table: RuleTable | undefined): void {
  const { id } = keys.rule;
  const current = table?.rules.find((rule) => rule.id === id) ?? statedRule(id);
  const isActive = current !== undefined && keys.keeps(current);
  if (isActive !== keys.active) throw new InvalidSnapshotError('a wrong active flag of a rule');
  if (!isActive || table === undefined) return;
  const windowMillis = effectiveWindowMillis(current, table.clockDriftPpm);
  if (!areSameRule(current, keys.rule) || keys.effectiveWindowMillis !== windowMillis) {
    throw new InvalidSnapshotError('keys whose rule differs from the rule table');
  }
}
