/**
 * The keys of rules that requests state. Callers choose the numbers, so a stated rule gets no table of its own: all
 * stated rules of one kind share a table, and many of them just take bytes of keys, which `StateSize` counts.
 *
 * - Stated windows (`100/60000ms`) share a table of logs. The stored name is the key, a line feed and the rule id. It
 *   is found under the hash of the key alone, so all rules of a key are found under one hash.
 * - Throttles (`30/60000ms+15`) share a table of arrival times, with one entry per key for all numbers.
 *
 * A request is judged by a `KeyTable` that has its rule and the keys of the shared table.
 */
import { parseStatedRule } from '../../api/stated-rule.ts';
import type { Rule } from '../../api/rule.ts';
import { assert } from '../assert.ts';
import {
  effectiveWindowMillis,
  groupMillisMax,
  isThrottle,
  type RuleTable,
  STATED_WINDOWS_PER_KEY_MAX,
  statedRule,
} from '../rules.ts';
import { KeyTable } from './key-table.ts';
import type { LostHistory } from './lost-history.ts';
import type { StateSize } from './state-size.ts';
import { TextBytes } from './text-bytes.ts';

/** The rule ids under which the shared tables are listed. No rule of a rule table can have such an id. */
const WINDOWS_ID = '0/1ms';
const THROTTLES_ID = '1/1ms+0';
/** Separates a key from the id of a stated window. The id contains no line feed. */
const SEPARATOR = 0x0a;
const SEPARATOR_TEXT = '\n';
/** The longest suffix of a stored name: see `LIMIT_MAX` and `WINDOW_MILLIS_MAX`. */
export const STATED_SUFFIX_BYTES_MAX = 21;
/** How many tables of stated rules are cached. The state does not depend on which. */
const AT_HAND_MAX = 256;

const DIGIT_ZERO = 0x30;
const SLASH = 0x2f;
const UNIT_BYTES = 2;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The parts of a state that are used here. */
interface StateOfTables {
  readonly table: RuleTable | undefined;
  readonly createdMillis: number;
  readonly size: StateSize;
  readonly lost: LostHistory;
}

/** The tables of stated rules of one state. */
export class StatedTables {
  readonly #state: StateOfTables;
  readonly #shared = new Map<string, KeyTable>();
  readonly #atHand = new Map<string, KeyTable>();
  readonly #stored: TextBytes;
  readonly #view = { bytes: new Uint8Array(0), nameFrom: 0, nameBytes: 0 };

  /** @param hashSeed the same as for the names of keys */
  constructor(state: StateOfTables, hashSeed: number) {
    this.#state = state;
    this.#stored = new TextBytes(hashSeed);
  }

  /** The keys of the rule that `ruleId` states; undefined if it states none, or if there is no rule table yet. */
  keysFor(ruleId: string): KeyTable | undefined {
    const known = this.#atHand.get(ruleId);
    if (known !== undefined) return known;
    const rule = statedRule(ruleId);
    if (rule === undefined || this.#state.table === undefined) return undefined;
    if (this.#atHand.size >= AT_HAND_MAX) this.#atHand.clear();
    const id = isThrottle(rule) ? THROTTLES_ID : WINDOWS_ID;
    const shared = this.#shared.get(id) ?? this.#newShared(id);
    const keys = this.#newTable(rule, shared);
    this.#atHand.set(ruleId, keys);
    return keys;
  }

  /** The shared table that is listed under this id; undefined if there is none. */
  sharedUnder(id: string): KeyTable | undefined {
    const isOne = id === WINDOWS_ID || id === THROTTLES_ID;
    return isOne ? (this.#shared.get(id) ?? this.#newShared(id)) : undefined;
  }

  /** The rules have changed, so windows may be widened by a different drift. */
  changeRules(): void {
    this.#atHand.clear();
  }

  #newShared(id: string): KeyTable {
    const rule = statedRule(id);
    assert(rule !== undefined, 'a shared table stands under a stated id');
    const shared = this.#newTable(rule);
    this.#shared.set(id, shared);
    return shared;
  }

  #newTable(rule: Rule, shared?: KeyTable): KeyTable {
    const { createdMillis, size, lost } = this.#state;
    const names = shared?.rule.id === WINDOWS_ID ? this.#stored : undefined;
    const windowMillis = effectiveWindowMillis(rule, this.#driftPpm);
    return new KeyTable({
      rule,
      effectiveWindowMillis: windowMillis,
      createdMillis,
      size,
      lost,
      shared,
      names,
    });
  }

  get #driftPpm(): number {
    return this.#state.table?.clockDriftPpm ?? 0;
  }

  /** May the key have grants under one more stated window? */
  hasRoomFor({ shared, meterKind }: KeyTable, name: TextBytes): boolean {
    if (shared === undefined || meterKind !== 'log') return true;
    let count = 0;
    for (const _ of this.#windowsOf(shared, name)) count += 1;
    return count < STATED_WINDOWS_PER_KEY_MAX;
  }

  /**
   * A slot of the key in one of the `keyTables`; undefined if it has none there. In the table of stated windows it may
   * have several.
   */
  slotOf(keys: KeyTable, name: TextBytes): number | undefined {
    const slots = keys.rule.id === WINDOWS_ID ? this.#windowsOf(keys, name) : [keys.find(name)];
    for (const slot of slots) if (slot < keys.size) return slot;
    return undefined;
  }

  /** The slots of a key in the table of stated windows. */
  *#windowsOf({ keys }: KeyTable, name: TextBytes): Generator<number, void> {
    for (const slot of keys.withHash(name.hash)) {
      const { bytes, nameFrom } = keys.readName(slot, this.#view);
      if (name.isAt(bytes, nameFrom, this.#separatorAt())) yield slot;
    }
  }

  /** The window, in group time, that decides when the key in a slot of one of the `keyTables` is forgotten. */
  windowToForget(keys: KeyTable, slot: number): number {
    if (keys.rule.id !== WINDOWS_ID) return keys.effectiveWindowMillis;
    const { bytes, nameFrom, nameBytes } = keys.keys.readName(slot, this.#view);
    let windowMillis = 0;
    let digit = 1;
    for (let at = nameFrom + nameBytes - UNIT_BYTES - 1; bytes[at] !== SLASH; at -= 1) {
      windowMillis += (bytes[at]! - DIGIT_ZERO) * digit;
      digit *= 10;
    }
    return groupMillisMax(windowMillis, this.#driftPpm);
  }

  /** Where the key ends in the name that was read last. */
  #separatorAt(): number {
    const { bytes, nameFrom, nameBytes } = this.#view;
    let at = nameFrom + nameBytes - 1;
    while (at > nameFrom && bytes[at] !== SEPARATOR) at -= 1;
    return at;
  }

  /** The key and the rule of a slot in one of the `keyTables`. */
  keyAt(keys: KeyTable, slot: number): { readonly userId: string; readonly ruleId: string } {
    const { bytes, nameFrom, nameBytes } = keys.keys.readName(slot, this.#view);
    const text = decoder.decode(bytes.subarray(nameFrom, nameFrom + nameBytes));
    if (keys.rule.id !== WINDOWS_ID) return { userId: text, ruleId: keys.rule.id };
    const end = text.lastIndexOf(SEPARATOR_TEXT);
    return { userId: text.slice(0, end), ruleId: text.slice(end + 1) };
  }

  /**
   * Converts a name from a snapshot into the form for lookups; undefined if no key of this table can have it.
   *
   * @param name the bytes that were read; changed by this call
   */
  storedName(keys: KeyTable, name: TextBytes): TextBytes | undefined {
    if (keys.rule.id !== WINDOWS_ID) return name;
    const end = name.bytes.subarray(0, name.length).lastIndexOf(SEPARATOR);
    if (end < 1) return undefined;
    const ruleId = decoder.decode(name.bytes.subarray(end + 1, name.length));
    if (parseStatedRule(ruleId) === undefined) return undefined;
    name.setBytes(name.bytes, 0, end);
    this.#stored.setBehind(name, SEPARATOR_TEXT + ruleId);
    return this.#stored;
  }
}
