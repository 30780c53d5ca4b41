/**
 * What a key that is new to a window inherits: the grants to this key that the other windows of the same rule know.
 * Every grant is charged to all windows of its rule, so each window knows some of the same grants, and none invents
 * any.
 *
 * Inheritance is computed when a key is judged under a window that has granted it nothing since it came into force, and
 * is recorded with the first grant. A key that no window knows any more inherits nothing: a window promises nothing
 * about grants before it came into force.
 */
import type { Demand } from '../meters/meter.ts';
import type { KeyTable } from './key-table.ts';
import { NONE } from './rows.ts';
import type { TextBytes } from './text-bytes.ts';

interface Heir extends Demand {
  readonly keys: KeyTable;
  /** Judged at a caller's timestamp. */
  readonly isEvent: boolean;
  /** The slot of the key in `keys`, or `NONE`. */
  readonly slot: number;
  /** The cost that its own window knows to be spent at `t`. */
  readonly live: number;
}

/** A key as another window knows it, under one of that window's meters. */
interface Known {
  readonly keys: KeyTable;
  readonly slot: number;
}

/** The runs of a log that are newer than `afterMillis`. */
export interface Runs extends Known {
  readonly afterMillis: number;
  /**
   * Additional cost in the millisecond `afterMillis` that the log before it does not know, because a rule can get and
   * drop a window within a millisecond. (Logs are read one after the other, the one with the newest grants last:
   * `fromLogs`.)
   */
  readonly costAtOnce: number;
}

/** The grants that a key inherits: they are known to other windows but not to its own. */
export interface Inherited extends Demand {
  readonly keys: KeyTable;
  readonly slot: number;
  /** The part of it that counts at `t`. */
  readonly cost: number;
  /** If logs know it: their runs, oldest first. Otherwise it counts as granted at `t`. */
  readonly runs: readonly Runs[];
  /**
   * Set if one meter of the same kind knows all of it and the key's own window nothing: that meter then computes waits.
   */
  readonly from: Known | undefined;
  /** Milliseconds after `t` until nothing of it counts. */
  readonly emptyMillis: number;
}

/**
 * Milliseconds to add to the time at which keys of `from` are judged to get the time for keys of `to`. Callers'
 * timestamps are the same everywhere, so the result is 0 for them.
 */
export function millisBetween(from: KeyTable, to: KeyTable, isEvent: boolean): number {
  return isEvent ? 0 : to.aheadMillis - from.aheadMillis;
}

/** Gives every window the other windows of its rule. Call it when tables were added or removed. */
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
    // Among equals the first counts, so the order must not depend on which window left and came back.
    keys.siblings = others.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sibling]) => sibling);
  }
}

/**
 * The time of the newest grant to the key that its window inherits; `-Infinity` without one. The time of a key never
 * runs back.
 */
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

/**
 * What the key inherits from the other windows, counted by the heir's rule; undefined if they know nothing more than
 * its own window.
 */
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

/** The grants of one log, and of later logs that continue it. */
interface Chain {
  readonly cost: number;
  readonly runs: readonly Runs[];
}

/**
 * A log knows everything that its key was granted within its window, until the rule dropped the window. So the most
 * that is known altogether is a chain of logs, each of which adds what the one before does not know: newer runs, and a
 * greater cost in its newest millisecond. The window's own log of the key, if there is one, comes first.
 */
function fromLogs(heir: Heir, all: readonly Known[]): Inherited | undefined {
  const { keys, slot } = heir;
  const inOrder = all
    .map((one) => ({ ...one, newestMillis: one.keys.meter.newestMillis(one.slot) }))
    .toSorted((a, b) => a.newestMillis - b.newestMillis);
  // For each log, the best chain of what is newer than it. Computed from the last log on, so that each chain is
  // computed once.
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

/** The window that knows the most, if that is more than the heir knows. */
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

/** The heir's demand at the time that the other table is judged by. */
function demandAt({ keys }: Pick<Known, 'keys'>, heir: Heir): Demand {
  return { ...demandOf(heir), t: heir.t + millisBetween(heir.keys, keys, heir.isEvent) };
}

/** A copy, because the heir is an object that is reused. */
function demandOf({ rule, t, cost, windowMillis, keptMillis, isEvent }: Heir): Demand {
  return { rule, t, cost, windowMillis, keptMillis, isEvent };
}
