/** The whole state of one state machine: a function of the applied log. Nothing may depend on its memory layout. */

import type { Rule } from '../../api/rule.ts';
import type { AppliedPosition, Decision } from '../decision.ts';
import type { BatchCursor } from '../log/batch.ts';
import type { MeterKind } from '../meters/meter-of.ts';
import type { Demand } from '../meters/meter.ts';
import type { Question } from '../question.ts';
import { DEFAULT_RULE, effectiveWindowMillis, type RuleTable } from '../rules.ts';
import { CustomerTable, ruleFor } from './customer-table.ts';
import { type Inherited, linkSiblings } from './inheritance.ts';
import { broughtBy, bytesToInherit, inherit } from './inherited-runs.ts';
import { KeyTable } from './key-table.ts';
import { LostHistory } from './lost-history.ts';
import type { GrantView } from './remembered-grant.ts';
import { RequestKey, RequestMemory } from './request-memory.ts';
import { NONE } from './rows.ts';
import { KEY_BYTES, type Room, StateSize } from './state-size.ts';
import { StatedTables } from './stated-tables.ts';
import { EMPTIED_RULES_MAX, emptiedBeyondBound, tablesUnder } from './rule-change.ts';
import { TextBytes } from './text-bytes.ts';
import { UtcSteps } from './utc-steps.ts';

/** The maximum work of one sweep: a few milliseconds, and far more than any other entry can add to the state. */
const SWEEP_VISITS = 8_192;
const SWEEP_EVICTIONS = 1_024;
const SWEEP_REQUEST_IDS = 1_024;

/** A grant that is wanted. */
interface Wanted extends Demand {
  readonly keys: KeyTable;
  /** The slot of a key in `keys`; `NONE` for a new key. */
  readonly slot: number;
  readonly inherited: Inherited | undefined;
}

/** The state of one partition's limiter. It is changed only by applying log entries, in their order. */
export class LimiterState {
  /** The last applied command. Not part of the hash: a denied request moves it and must leave no other trace. */
  applied: AppliedPosition = { index: 0, term: 0, timeMillis: 0 };
  /** Group time of the first accepted rule table; nothing can be granted before. */
  createdMillis = 0;
  /** Group time of the last command that changed anything, such as a grant, a rule table or a sweep. */
  changedMillis = 0;
  /**
   * At this time all near-epoch grants of forgotten rules are out of their windows. Never above group time. A rule that
   * comes back may be one of them, so requests for an earlier time are denied.
   */
  droppedThroughMillis = 0;
  table: RuleTable | undefined;
  /** In sweep order: one per rule id that is in force or has something recorded, and those shared by stated rules. */
  keyTables: KeyTable[] = [];
  /** Where the sweep continues: an index in `keyTables`, and a slot in that table (up to its size). */
  sweepTable = 0;
  sweepSlot = 0;
  readonly size = new StateSize();
  /** What to find: a user, a request id of a user, the rule of a grant. */
  readonly name: TextBytes;
  /** The key of the record that a request was matched with. */
  readonly guarded: TextBytes;
  readonly requestKey: RequestKey;
  readonly ruleId: TextBytes;
  readonly lost = new LostHistory();
  readonly utc = new UtcSteps();
  readonly memory = new RequestMemory(this.size, this.lost);
  readonly customers: CustomerTable;
  readonly stated: StatedTables;
  /** The `keyTables` by rule id: the active ones, and the others. */
  readonly #tableOf = new Map<string, KeyTable>();
  readonly #retiredOf = new Map<string, KeyTable[]>();

  /** @param hashSeed only for finding keys; no decision or snapshot depends on it. See `TextBytes` */
  constructor(hashSeed: number) {
    this.name = new TextBytes(hashSeed);
    this.guarded = new TextBytes(hashSeed);
    this.customers = new CustomerTable(this.size, hashSeed);
    this.stated = new StatedTables(this, hashSeed);
    this.requestKey = new RequestKey(hashSeed);
    this.ruleId = new TextBytes(hashSeed);
  }

  /** The keys of the rule in force with this id. */
  tableOf(ruleId: string): KeyTable | undefined {
    return this.#tableOf.get(ruleId);
  }

  /** Updates all links between tables. Call it when tables were added, removed, activated or deactivated. */
  linkTables(): void {
    this.#tableOf.clear();
    this.#retiredOf.clear();
    for (const keys of this.keyTables) {
      const { id } = keys.rule;
      // Stated rules are judged by tables of their own, which use the keys of this one.
      if (keys.isStated) continue;
      if (keys.active) this.#tableOf.set(id, keys);
      else this.#retiredOf.set(id, [...(this.#retiredOf.get(id) ?? []), keys]);
    }
    for (const [id, keys] of this.#tableOf) keys.retired = this.#retiredOf.get(id) ?? [];
    linkSiblings(this.keyTables);
  }

  addTable(rule: Rule, effectiveWindowMillis: number): KeyTable {
    const { createdMillis, size, lost, utc } = this;
    const retired = this.#retiredOf.get(rule.id);
    const keys = new KeyTable({ rule, effectiveWindowMillis, createdMillis, size, retired, lost, utc });
    this.keyTables.push(keys);
    this.#tableOf.set(rule.id, keys);
    return keys;
  }

  /**
   * The keys of the rule that a request names, see `ruleIdOf`. Those of stated rules are part of the state only from
   * the first grant on.
   */
  keysFor(named: string): KeyTable | undefined {
    const ruleId = this.ruleIdOf(named);
    return this.#tableOf.get(ruleId) ?? this.stated.keysFor(ruleId);
  }

  /** To be called before a grant: if the rule is a stated one, the table with its keys becomes part of the state. */
  keep({ shared }: KeyTable): void {
    if (shared === undefined || shared.isKept) return;
    const { rule } = shared;
    shared.follow(rule, effectiveWindowMillis(rule, this.table?.clockDriftPpm ?? 0), 0);
    shared.isKept = true;
    this.keyTables.push(shared);
  }

  /** Records what the key that was looked up inherits in a window, before its first grant there. */
  inherit(inherited: Inherited, brought = broughtBy(inherited)): void {
    inherit(inherited, brought, this.name, this.applied);
  }

  /** See `LimiterStateMachine.restoredMillis`. */
  restoredMillis(now: number): number {
    let throughMillis = 0;
    for (const keys of this.#tableOf.values()) {
      const { rule } = keys;
      throughMillis = Math.max(throughMillis, keys.lostMillis({ asked: now, isEvent: false, rule }, now));
    }
    return Math.max(0, throughMillis - now);
  }

  /** The version of the rules in force; 0 before the first rule table. */
  get rulesVersion(): number {
    return this.table?.version ?? 0;
  }

  /** Puts a newer rule table into force at the applied time. Recorded grants stay where they are. */
  changeRules(table: RuleTable): void {
    const { timeMillis } = this.applied;
    if (this.table === undefined) this.createdMillis = timeMillis;
    this.changedMillis = timeMillis;
    this.table = table;
    this.keyTables = tablesUnder(table, this);
    this.stated.changeRules();
    this.linkTables();
    this.sweepTable = 0;
    this.sweepSlot = 0;
    this.#dropEmptied();
  }

  /** Forgets emptied rules beyond `EMPTIED_RULES_MAX`. The sweep continues where it was. */
  #dropEmptied(): void {
    if (this.keyTables.length - (this.table?.rules.length ?? 0) <= EMPTIED_RULES_MAX) return;
    const dropped = emptiedBeyondBound(this.keyTables);
    if (dropped.size === 0) return;
    for (const throughMillis of dropped.values())
      this.droppedThroughMillis = Math.max(this.droppedThroughMillis, throughMillis);
    const isKnown = ({ rule }: KeyTable): boolean => !dropped.has(rule.id);
    if (!isKnown(this.keyTables[this.sweepTable]!)) this.sweepSlot = 0;
    const before = this.keyTables.slice(0, this.sweepTable).filter(isKnown).length;
    this.keyTables = this.keyTables.filter(isKnown);
    this.sweepTable = before % this.keyTables.length;
    this.linkTables();
  }

  /** Sets the user and request id that are judged next. */
  lookUp({ userId, requestId }: { readonly userId: string; readonly requestId?: string | undefined }): void {
    this.name.set(userId);
    if (requestId !== undefined) this.requestKey.set(userId, requestId);
  }

  /** Sets the key of a further limit of the same request. */
  lookUpFurther(userId: string): void {
    this.name.set(userId);
    this.requestKey.setFurther(userId);
  }

  /** The same for the request that a cursor is at. */
  lookUpAt({ bytes, userIdFrom, userIdTo, requestIdFrom, requestIdTo }: BatchCursor): void {
    this.name.setBytes(bytes, userIdFrom, userIdTo);
    if (requestIdTo === 0) return;
    const { text } = this.requestKey;
    text.clear();
    text.appendBytes(bytes, userIdFrom, userIdTo);
    text.appendBytes(bytes, requestIdFrom, requestIdTo);
    this.requestKey.seal(userIdTo - userIdFrom, requestIdTo - requestIdFrom);
  }

  /** The id of the rule that is meant: the default rule's if none was named. */
  ruleIdOf(named: string): string {
    return named === DEFAULT_RULE ? (this.table?.rules[0]?.id ?? DEFAULT_RULE) : named;
  }

  /**
   * Is there room to remember a grant, and its request id if it has one, for the name and ids that were looked up?
   *
   * @param before bytes that the same request takes for its other limits
   */
  hasRoomFor(wanted: Wanted, hasRequestId: boolean, room: Room, before = 0): boolean {
    const bytes = before + this.bytesFor(wanted, hasRequestId);
    const { keys, slot } = wanted;
    const isNew = slot === NONE || hasRequestId;
    if (slot === NONE && !this.stated.hasRoomFor(keys, this.name)) return false;
    if (room === 'exhausted' && bytes > 0) return false;
    if (room === 'full' && isNew) return false;
    return this.size.hasRoom(bytes, isNew, this.table?.partitionBytesMax ?? 0);
  }

  /** The bytes that the grant would take, by the model of `StateSize`. */
  bytesFor(wanted: Wanted, hasRequestId: boolean): number {
    const { keys, slot, inherited } = wanted;
    let bytes =
      inherited === undefined
        ? keys.meter.bytesToGrant(slot, wanted)
        : bytesToInherit(inherited, slot, wanted);
    if (slot === NONE) bytes += KEY_BYTES + keys.nameBytes(this.name);
    if (hasRequestId) {
      this.ruleId.set(keys.rule.id);
      bytes += this.memory.bytesFor(this.requestKey, this.ruleId);
    }
    return bytes;
  }

  /** Remembers the answer of a grant under the request id and rule id that were looked up. */
  remember(decision: Decision, asked: Question, meterKind: MeterKind): void {
    const expiresMillis = this.applied.timeMillis + (this.table?.requestIdHorizonMillis ?? 0);
    const grant = this.memory.remember(this.requestKey, this.ruleId);
    grant.record(decision, { asked, expiresMillis, meterKind });
  }

  /**
   * Refunds what was granted under the request id that was looked up; the id stays remembered as refunded. Returns that
   * grant as it was first answered, even if it was refunded before; undefined if none is remembered. Valid until the
   * next lookup.
   */
  refund(): GrantView | undefined {
    const { timeMillis } = this.applied;
    // Not in the last millisecond of an id. With the longest horizon, a far-epoch key may be forgotten and known anew
    // in that millisecond; then the same timestamp could belong to a different grant.
    const id = this.memory.find(this.requestKey, timeMillis + 1);
    if (id === NONE) return undefined;
    const reporting = this.memory.reportingOf(id);
    const grant = this.memory.view(reporting);
    if (grant.isRefunded) return grant;
    for (const limit of this.memory.limitsOf(id)) this.#refundLimit(limit);
    this.changedMillis = timeMillis;
    return this.memory.view(reporting);
  }

  #refundLimit(id: number): void {
    this.memory.refund(id);
    const grant = this.memory.view(id);
    const { bytes, bytesAt, userBytes } = grant;
    this.name.setBytes(bytes, bytesAt, bytesAt + userBytes);
    const keys = this.#tableThatGranted(grant);
    const slot = keys?.find(this.name) ?? NONE;
    if (keys !== undefined && slot !== NONE)
      keys.refund(slot, grant, ruleFor(this.customers.find(this.name), keys.rule), this.applied.timeMillis);
  }

  /** Forgets what all tables, or those that `isMeant` selects, remember of the key that was looked up. */
  resetKey(isMeant: (keys: KeyTable) => boolean = () => true): void {
    this.changedMillis = this.applied.timeMillis;
    for (const [place, keys] of this.keyTables.entries()) {
      if (!isMeant(keys)) continue;
      let slot = this.stated.slotOf(keys, this.name);
      if (slot === undefined) continue;
      for (; slot !== undefined; slot = this.stated.slotOf(keys, this.name)) keys.reset(slot);
      // The sweep position must not exceed the size of the table.
      if (place === this.sweepTable) this.sweepSlot = Math.min(this.sweepSlot, keys.size);
    }
    this.#dropEmptied();
  }

  /** Finds it even if another meter is in force by now. */
  #tableThatGranted({ ruleId, meterKind }: GrantView): KeyTable | undefined {
    const keys = this.keysFor(ruleId);
    if (keys?.meterKind === meterKind) return keys;
    return this.#retiredOf.get(ruleId)?.find((retired) => retired.meterKind === meterKind);
  }

  get sweepsPerRound(): number {
    const { keys, customers, requestIds } = this.size;
    const visits = keys + customers + this.keyTables.length;
    return 1 + Math.max(Math.ceil(visits / SWEEP_VISITS), Math.ceil(requestIds / SWEEP_REQUEST_IDS));
  }

  /** Forgets some idle items. */
  sweep(): void {
    const { timeMillis } = this.applied;
    this.changedMillis = timeMillis;
    this.memory.expire(timeMillis, SWEEP_REQUEST_IDS);
    this.customers.sweep(SWEEP_VISITS, this.applied);
    this.sweepKeys(SWEEP_VISITS, SWEEP_EVICTIONS);
  }

  /** Drops the table at the sweep position if it belongs to stated rules and has no key. Returns whether it did. */
  #maybeDrop(keys: KeyTable): boolean {
    if (!keys.isStated || keys.size > 0) return false;
    this.keyTables.splice(this.sweepTable, 1);
    keys.isKept = false;
    keys.evictedThroughMillis = 0;
    return true;
  }

  #forgetIfIdle(keys: KeyTable, timeMillis: number): boolean {
    const { customers, stated, sweepSlot: slot } = this;
    const rule = customers.ruleToForget(keys, slot);
    return keys.evictIfIdle(slot, timeMillis, rule, stated.windowToForget(keys, slot));
  }

  /** Visits up to `visits` keys and forgets the idle ones, up to `evictions`. */
  sweepKeys(visits: number, evictions: number): void {
    if (this.keyTables.length === 0) return;
    let evicted = 0;
    let isEmptied = false;
    const { timeMillis } = this.applied;
    for (let visit = 0; visit < visits && evicted < evictions; visit += 1) {
      const keys = this.keyTables[this.sweepTable]!;
      if (this.sweepSlot >= keys.size) {
        if (!this.#maybeDrop(keys)) this.sweepTable += 1;
        this.sweepTable %= this.keyTables.length;
        this.sweepSlot = 0;
      } else if (this.#forgetIfIdle(keys, timeMillis)) {
        evicted += 1;
        isEmptied ||= keys.size === 0 && !keys.active;
      } else {
        this.sweepSlot += 1;
      }
    }
    if (isEmptied) this.#dropEmptied();
  }
}
