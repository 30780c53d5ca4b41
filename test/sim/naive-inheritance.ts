/**
 * The start of a window that has granted a key nothing since it came into force: it inherits what the other windows of
 * its rule know beyond its own knowledge. Written from docs/internals/limiter.md; it uses no code of the product.
 */
import type { Rule } from '../../src/api/rule.ts';
import type { Known, KnownByMeter } from './naive-known.ts';
import {
  afterGrant,
  type At,
  atTime,
  meterKindOf,
  newestOf,
  type Run,
  spentAt,
  waitUntil,
  withoutEmpty,
} from './naive-meters.ts';

export interface Inherited {
  readonly cost: number;
  /** For logs: their runs, in order. */
  readonly brought: readonly Run[] | undefined;
  /** If the same meter knows all of it, and the window nothing: that meter's memory. */
  readonly runs: readonly Run[] | undefined;
  /** How long some of it counts. */
  readonly emptyMillis: number;
}

/** By other window: the memory of its meters of the key that this window inherits. */
export function heardOf(known: Known, nowMillis: number): readonly (readonly KnownByMeter[])[] {
  const { sinceMillis, reachMillis, madeMillis = -Infinity } = known;
  if (known.runs !== undefined && madeMillis >= sinceMillis) return [];
  // Later, this window may have known the key and forgotten it in time.
  const isEarly = nowMillis < sinceMillis + reachMillis;
  return known.others.map((window) =>
    window.filter(({ runs, madeMillis: made = -Infinity }) => {
      return runs !== undefined && (isEarly || made < sinceMillis);
    }),
  );
}

/** The time of the query, and the offset that converts a time of another rule's meter into this one's. */
interface Asking {
  readonly at: At;
  readonly later: (rule: Rule) => number;
}

/** @param live what the window knows itself */
export function inheritedOf(
  known: Known,
  heard: readonly (readonly KnownByMeter[])[],
  { at, later }: Asking,
  live: number,
): Inherited | undefined {
  const all = heard.flat();
  const isLogged = [known, ...known.retired, ...all].every(({ rule }) => meterKindOf(rule) === 'slidingLog');
  return isLogged ? ofLogs(known, all, at) : ofMost(known, heard, { at, later }, live);
}

/**
 * For logs, the largest combined knowledge: each adds what the one before it does not know, also within its newest
 * millisecond.
 */
function ofLogs({ rule, runs: own }: Known, all: readonly KnownByMeter[], at: At): Inherited | undefined {
  const costOf = (runs: readonly Run[]): number => spentAt(rule, runs, at);
  const inOrder = all.map(({ runs = [] }) => runs).toSorted((a, b) => newestOf(a) - newestOf(b));
  const longestAfter = (before: readonly Run[], from: number): readonly (readonly Run[])[] => {
    const afterMillis = before.length === 0 ? -Infinity : newestOf(before);
    let most: readonly (readonly Run[])[] = [];
    for (const [i, log] of inOrder.entries()) {
      if (i < from || newestOf(log) < afterMillis) continue;
      const more = sumAt(log, afterMillis) - sumAt(before, afterMillis);
      const part = [
        ...(more > 0 ? [{ timeMillis: afterMillis, cost: more }] : []),
        ...log.filter((run) => run.timeMillis > afterMillis),
      ];
      const later = longestAfter(log, i + 1);
      const chain = costOf(part) > 0 ? [part, ...later] : later;
      if (costOf(chain.flat()) > costOf(most.flat())) most = chain;
    }
    return most;
  };
  const chain = longestAfter(own ?? [], 0);
  const [only, ...others] = chain;
  if (only === undefined) return undefined;
  const brought = chain.flat();
  return {
    cost: costOf(brought),
    brought,
    runs: own === undefined && others.length === 0 ? only : undefined,
    emptyMillis: waitUntil(rule, brought, at, 0),
  };
}

function sumAt(log: readonly Run[], millis: number): number {
  return log.reduce((sum, run) => sum + (run.timeMillis === millis ? run.cost : 0), 0);
}

/** The window that knows most. */
function ofMost(
  { rule, runs: own }: Known,
  heard: readonly (readonly KnownByMeter[])[],
  { at, later }: Asking,
  live: number,
): Inherited | undefined {
  let most: Inherited | undefined;
  for (const window of heard) {
    const reported = window.map(({ rule: theirs, runs = [] }) => {
      const theirTime = atTime(at.timeMillis - later(theirs), at.windowMillis, at.steps, at.isEvent);
      return { as: countedAs(rule, theirs), runs, theirTime };
    });
    const spent = reported.reduce((sum, { as, runs, theirTime }) => sum + spentAt(as, runs, theirTime), 0);
    if (spent - live <= (most?.cost ?? 0)) continue;
    const [only] = reported;
    const isAlike = reported.length === 1 && only !== undefined && meterKindOf(only.as) === meterKindOf(rule);
    most = {
      cost: spent - live,
      brought: undefined,
      runs: isAlike && own === undefined && live === 0 ? only.runs : undefined,
      emptyMillis: Math.max(...reported.map(({ as, runs, theirTime }) => waitUntil(as, runs, theirTime, 0))),
    };
  }
  return most;
}

/** With the limit and window of this rule, and the meter of the other one. */
function countedAs(rule: Rule, { meter, granularityMillis }: Rule): Rule {
  const { meter: _, granularityMillis: __, ...others } = rule;
  return {
    ...others,
    ...(meter !== undefined && { meter }),
    ...(granularityMillis !== undefined && { granularityMillis }),
  };
}

/** The memory of a key that has inherited and was not granted anything yet. */
export function runsWith(
  inherited: Inherited | undefined,
  { rule, groupWindowMillis, runs }: Pick<Known, 'rule' | 'groupWindowMillis' | 'runs'>,
  judged: At & { readonly aheadMillis: number },
): readonly Run[] | undefined {
  if (inherited === undefined) return runs;
  const { timeMillis, aheadMillis } = judged;
  const keptMillis = groupWindowMillis + aheadMillis;
  if (inherited.brought !== undefined)
    return withoutEmpty([...(runs ?? []), ...inherited.brought]).filter(
      (run) => run.timeMillis > timeMillis - keptMillis,
    );
  return afterGrant(rule, runs ?? [], { ...judged, cost: inherited.cost, keptMillis });
}

export function newestHeard(
  heard: readonly (readonly KnownByMeter[])[],
  later: (rule: Rule) => number,
): number {
  return Math.max(-Infinity, ...heard.flat().map(({ rule, runs = [] }) => newestOf(runs) + later(rule)));
}
