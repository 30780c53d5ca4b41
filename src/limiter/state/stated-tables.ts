/**
 * Keys of rules that requests state. Numbers are callers' to choose, so no table is made for them: all stated rules of a kind share one,
 * and what many of them take is bytes of keys, which `StateSize` counts.
 *
 * - Stated windows (`100/60000ms`) share a table of logs. The name of a key there is the key, a line feed, and the id of the rule;
 *   it is found under the hash of the key alone, so that all rules of a key are found at one place.
 * - Throttles (`30/60000ms+15`) share a table of arrival times. A key has one there, whatever the numbers.
 *
 * A request is judged by a `KeyTable` that has its rule, and the keys of a shared one.
 */
import { parseStatedRule } from '../../api/stated-rule.ts';
import type { Rule } from '../../api/rule.ts';
import { assert } from '../assert.ts';
import { effectiveWindowMillis, groupMillisMax, type RuleTable } from '../rules.ts';
import { isThrottle, STATED_WINDOWS_PER_KEY_MAX, statedRule } from '../stated-rules.ts';
import { KeyTable } from './key-table.ts';
import type { LostHistory } from './lost-history.ts';
import type { StateSize } from './state-size.ts';
import { TextBytes } from './text-bytes.ts';

/** The rules that stand for the shared tables where tables are listed. No rule of the table may have such an id. */
const WINDOWS_ID = '0/1ms';
const THROTTLES_ID = '1/1ms+0';
/** Between a key and the id of a stated window, which has none. */
const SEPARATOR = 0x0a;
const SEPARATOR_TEXT = '\n';
/** What comes behind a key in the longest name: see `LIMIT_MAX` and `WINDOW_MILLIS_MAX`. */
export const STATED_SUFFIX_BYTES_MAX = 21;
/** Rules that are at hand, ready to be judged by. Nothing of the state depends on which. */
const AT_HAND_MAX = 256;

const DIGIT_ZERO = 0x30;
const SLASH = 0x2f;
const UNIT_BYTES = 2;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** What it looks at of a state. */
interface StateOfTables {
  readonly table: RuleTable | undefined;
  readonly createdMillis: number;
  readonly size: StateSize;
  readonly lost: LostHistory;
}

export class StatedTables {
  readonly #state: StateOfTables;
  readonly #shared = new Map<string, KeyTable>();
  readonly #atHand = new Map<string, KeyTable>();
  readonly #stored: TextBytes;
  readonly #view = { bytes: new Uint8Array(0), nameFrom: 0, nameBytes: 0 };

  /** @param hashSeed that of the names of keys */
  constructor(state: StateOfTables, hashSeed: number) {
    this.#state = state;
    this.#stored = new TextBytes(hashSeed);
  }

  /** The keys of the rule that `ruleId` states; undefined if it states none, or there are no rules at all yet. */
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

  /** The shared table that stands under this id; undefined if none does. */
  sharedUnder(id: string): KeyTable | undefined {
    const isOne = id === WINDOWS_ID || id === THROTTLES_ID;
    return isOne ? (this.#shared.get(id) ?? this.#newShared(id)) : undefined;
  }

  /** Other rules are in force: windows are widened by another drift. */
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

  /** May the key count under one more stated window? */
  hasRoomFor({ shared, meterKind }: KeyTable, name: TextBytes): boolean {
    if (shared === undefined || meterKind !== 'log') return true;
    let count = 0;
    for (const _ of this.#windowsOf(shared, name)) count += 1;
    return count < STATED_WINDOWS_PER_KEY_MAX;
  }

  /** A slot of the key in a table of `keyTables`; undefined: it has none there. In the table of stated windows it may have several. */
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

  /** The window by which a slot of a table of `keyTables` is forgotten, in group time. */
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

  /** The key and the rule of a slot of a table of `keyTables`. */
  keyAt(keys: KeyTable, slot: number): { readonly userId: string; readonly ruleId: string } {
    const { bytes, nameFrom, nameBytes } = keys.keys.readName(slot, this.#view);
    const text = decoder.decode(bytes.subarray(nameFrom, nameFrom + nameBytes));
    if (keys.rule.id !== WINDOWS_ID) return { userId: text, ruleId: keys.rule.id };
    const end = text.lastIndexOf(SEPARATOR_TEXT);
    return { userId: text.slice(0, end), ruleId: text.slice(end + 1) };
  }

  /**
   * A name as a snapshot has it, ready to be found and added; undefined if it is none of a key in this table.
   *
   * @param name the bytes that were read; it is changed
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
