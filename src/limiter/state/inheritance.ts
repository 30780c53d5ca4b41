/**
 * What a window that is new to a key starts with: what the other windows of its rule know of that key. Every grant is charged to all
 * windows of its rule, so each of them knows some of the same grants, and none more than there were. It decides nothing.
 *
 * It is asked for when a key is judged under a window that has not granted it anything since it came into force, and recorded with
 * the first grant. A key that is known under no window any more starts with nothing: a window promises nothing of what was granted
 * before it came into force.
 */
import type { Demand } from '../meters/meter.ts';
import type { KeyTable } from './key-table.ts';
import { NONE } from './rows.ts';
import type { TextBytes } from './text-bytes.ts';

interface Heir extends Demand {
  readonly keys: KeyTable;
  /** It is judged at a caller's timestamp. */
  readonly isEvent: boolean;
  /** Where the key is in `keys`, or `NONE`. */
  readonly slot: number;
  /** What it knows itself to be spent at `t`. */
  readonly live: number;
}

/** A key as another window knows it, by one of its meters. */
interface Known {
  readonly keys: KeyTable;
  readonly slot: number;
}

/** Runs of a log, those that are newer than `afterMillis`. */
export interface Runs extends Known {
  readonly afterMillis: number;
  /** What it knows of `afterMillis` itself, beyond what the log before it does: windows come and leave within a millisecond, too. */
  readonly costAtOnce: number;
}

/** What a key has of the other windows, and its window does not know. */
export interface Inherited extends Demand {
  readonly keys: KeyTable;
  readonly slot: number;
  /** What of it counts at `t`. */
  readonly cost: number;
  /** Where logs tell it, their runs, oldest first; else it counts as if it had been granted at `t`. */
  readonly runs: readonly Runs[];
  /** Where one meter of the same kind knows all of it, and the window nothing: that says how long it takes. */
  readonly from: Known | undefined;
  /** Milliseconds after `t` until nothing of it counts. */
  readonly emptyMillis: number;
}

/** What is to be added to a time that keys of `from` are judged at for that of keys of `to`. Timestamps of callers are the same everywhere. */
export function millisBetween(from: KeyTable, to: KeyTable, isEvent: boolean): number {
  return isEvent ? 0 : to.aheadMillis - from.aheadMillis;
}

/** To be called when tables came or left: every window gets to know the others of its rule. */
export function linkSiblings(tables: readonly KeyTable[]): void {
  const rules = new Map<string, Map<string, KeyTable[]>>();
  for (const keys of tables) {
    const { id, of = id } = keys.rule;
    const windows = rules.get(of) ?? new Map<string, KeyTable[]>();
    windows.set(id, [...(windows.get(id) ?? []), keys]);
    rules.set(of, windows);
  }
  for (const keys of tables) {
    const { id: own, of = own } = keys.rule;
    const others = [...(rules.get(of) ?? [])].filter(([id]) => id !== own);
    // Where two know as much the first counts: the order must not depend on which window left and came again.
    keys.siblings = others.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sibling]) => sibling);
  }
}

/** The newest grant to the key that its window is to know of: no time of a key runs back. `-Infinity` without one. */
export function newestInherited(
  { keys, isEvent }: Pick<Heir, 'keys' | 'isEvent'>,
  name: TextBytes,
  now: number,
): number {
  let newestMillis = -Infinity;
  for (const sibling of keys.siblings) {
    for (const known of sibling) {
      const slot = keys.slotToInherit(known, name, now);
      const there = slot === NONE ? -Infinity : known.meter.newestMillis(slot);
      newestMillis = Math.max(newestMillis, there + millisBetween(known, keys, isEvent));
    }
  }
  return newestMillis;
}

/** What the key gets from the other windows, as the heir's own rule counts that; undefined if they know nothing more than it does. */
export function inheritedBy(heir: Heir, name: TextBytes, now: number): Inherited | undefined {
  const { keys } = heir;
  const windows = keys.siblings.map((sibling) =>
    sibling.flatMap((table): readonly Known[] => {
      const slot = keys.slotToInherit(table, name, now);
      return slot === NONE ? [] : [{ keys: table, slot }];
    }),
  );
  const all = windows.flat();
  if (all.length === 0) return undefined;
  const isLogged = [keys, ...keys.retired, ...all.map((one) => one.keys)].every(isLog);
  return isLogged ? fromLogs(heir, all) : fromMost(heir, windows);
}

function isLog({ meterKind }: KeyTable): boolean {
  return meterKind === 'log';
}

/** Grants of one log, and of others that came after them. */
interface Chain {
  readonly cost: number;
  readonly runs: readonly Runs[];
}

/**
 * A log knows all that its key was granted within its window until the window left. So the most that is known together is a chain of logs,
 * each of which adds what the one before it does not know: newer runs, and a greater cost in its newest millisecond. The window's own
 * log of the key, if it has one, is the first.
 */
function fromLogs(heir: Heir, all: readonly Known[]): Inherited | undefined {
  const { keys, slot } = heir;
  const inOrder = all
    .map((one) => ({ ...one, newestMillis: one.keys.meter.newestMillis(one.slot) }))
    .toSorted((a, b) => a.newestMillis - b.newestMillis);
  // By place, the best chain of what is newer than that log; from the last one on, so each is found once.
  const chains: Chain[] = [];
  const longestAfter = (before: Known | undefined, from: number): Chain => {
    const afterMillis = before?.keys.meter.newestMillis(before.slot) ?? -Infinity;
    let most: Chain = { cost: 0, runs: [] };
    for (const [i, { newestMillis, ...known }] of inOrder.entries()) {
      if (i < from || newestMillis < afterMillis) continue;
      const costAtOnce =
        before === undefined ? 0 : spentAt(known, afterMillis, heir) - spentAt(before, afterMillis, heir);
      const runs = { ...known, afterMillis, costAtOnce: Math.max(0, costAtOnce) };
      const { cost, runs: later } = chains[i]!;
      const spent = spentAfter(runs, heir);
      if (spent + cost > most.cost) most = { cost: spent + cost, runs: spent > 0 ? [runs, ...later] : later };
    }
    return most;
  };
  for (let i = inOrder.length - 1; i >= 0; i -= 1) chains[i] = longestAfter(inOrder[i], i + 1);
  const { cost, runs } = longestAfter(slot === NONE ? undefined : { keys, slot }, 0);
  if (cost === 0) return undefined;
  const [only, ...others] = runs;
  const from = slot === NONE && others.length === 0 ? only : undefined;
  return { ...demandOf(heir), keys, slot, cost, runs, from, emptyMillis: emptyAfter(runs, heir) };
}

/** The window that knows most, as far as that is more. */
function fromMost(heir: Heir, windows: readonly (readonly Known[])[]): Inherited | undefined {
  const { keys, slot, live } = heir;
  let most: Inherited | undefined;
  for (const known of windows) {
    const spent = known.reduce((sum, one) => sum + one.keys.meter.liveCost(one.slot, demandAt(one, heir)), 0);
    if (spent <= live + (most?.cost ?? 0)) continue;
    const [only, ...others] = known;
    const isAlike = others.length === 0 && only?.keys.meterKind === keys.meterKind;
    const from = isAlike && slot === NONE && live === 0 ? only : undefined;
    const emptyMillis = emptyAfter(known, heir);
    most = { ...demandOf(heir), keys, slot, cost: spent - live, runs: [], from, emptyMillis };
  }
  return most;
}

function spentAfter({ afterMillis, costAtOnce, ...known }: Runs, heir: Heir): number {
  const isLive = afterMillis > heir.t - heir.windowMillis;
  return (
    spentSince(known, Math.max(afterMillis, heir.t - heir.windowMillis), heir) + (isLive ? costAtOnce : 0)
  );
}

function spentAt(known: Known, millis: number, heir: Heir): number {
  return spentSince(known, millis - 1, heir) - spentSince(known, millis, heir);
}

function spentSince({ keys, slot }: Known, afterMillis: number, heir: Heir): number {
  return keys.meter.liveCost(slot, { ...demandOf(heir), windowMillis: heir.t - afterMillis });
}

function emptyAfter(known: readonly Known[], heir: Heir): number {
  return Math.max(
    ...known.map(({ keys, slot }) => keys.meter.millisUntilEmpty(slot, demandAt({ keys }, heir))),
  );
}

/** What the heir asks, at the time that the other table goes by. */
function demandAt({ keys }: Pick<Known, 'keys'>, heir: Heir): Demand {
  return { ...demandOf(heir), t: heir.t + millisBetween(heir.keys, keys, heir.isEvent) };
}

/** One object is used for many questions: nothing of it may be kept. */
function demandOf({ rule, t, cost, windowMillis, keptMillis, isEvent }: Heir): Demand {
  return { rule, t, cost, windowMillis, keptMillis, isEvent };
}
