/**
 * The memory of each meter about a key, and the part of the limit that it uses, written again from
 * docs/concepts/meters.md and docs/internals/limiter.md as simply as possible: a few immutable runs, which each grant
 * replaces by new ones. It uses no code of the product.
 */
import type { Rule } from '../../src/api/rule.ts';
import { aheadAt, NO_STEPS, type Steps } from './naive-utc.ts';

/** The meaning of its fields depends on the meter. The last run has the time of the newest grant. */
export interface Run {
  readonly timeMillis: number;
  readonly cost: number;
  readonly windowMillis?: number;
}

/** The time at which a meter is queried, and its window. */
export interface At {
  readonly timeMillis: number;
  readonly windowMillis: number;
  /** The steps of UTC in the log, which give UTC at that time. */
  readonly steps: Steps;
  readonly utcAheadMillis: number;
  /** The time is a caller's timestamp. */
  readonly isEvent: boolean;
}

/** Where only the window matters. */
type In = Pick<At, 'timeMillis' | 'windowMillis'>;

export function atTime(timeMillis: number, windowMillis: number, steps: Steps, isEvent = false): At {
  return { timeMillis, windowMillis, steps, utcAheadMillis: aheadAt(steps, timeMillis), isEvent };
}

const RUN_BYTES = 16;
const DAY_MILLIS = 86_400_000;
const WEEK_MILLIS = 604_800_000;
const GRANULAR_KEY_BYTES = 8;

/** Rules of one kind share grants. */
export function meterKindOf({ meter = 'slidingLog', granularityMillis = 1 }: Rule): string {
  if (meter === 'tokenBucket' || meter === 'leakyBucket') return 'bucket';
  return meter === 'slidingLog' && granularityMillis > 1 ? 'granules' : meter;
}

export function capacityOf({ limit, burst = limit, queue = 0 }: Rule): number {
  return limit === 0 ? 0 : burst + queue;
}

export function newestOf(runs: readonly Run[]): number {
  return runs.at(-1)?.timeMillis ?? 0;
}

/** A grant exactly as old as the window is out. */
function liveRuns(runs: readonly Run[], { timeMillis, windowMillis }: In): readonly Run[] {
  return runs.filter((run) => run.timeMillis > timeMillis - windowMillis);
}

function costOf(runs: readonly Run[]): number {
  return runs.reduce((sum, { cost }) => sum + cost, 0);
}

/** Under a rule with limit 0 earlier grants drain slowly. */
function rateOf({ limit }: Rule): number {
  return Math.max(1, limit);
}

/** The level of a bucket at that time, in units of a cost divided by the milliseconds of its window. */
function levelAt(rule: Rule, runs: readonly Run[], { timeMillis, windowMillis }: In): number {
  const [run] = runs;
  if (run === undefined) return 0;
  const level = Math.ceil((run.cost * windowMillis) / (run.windowMillis ?? 1));
  return Math.max(0, level - rateOf(rule) * (timeMillis - run.timeMillis));
}

/** The grants in the aligned window of that time, and in the one before. */
function countsAt(
  { windowMillis }: Rule,
  runs: readonly Run[],
  timeMillis: number,
): readonly [number, number] {
  const [previous, current] = runs;
  if (previous === undefined || current === undefined) return [0, 0];
  const { timeMillis: newest, windowMillis: before = windowMillis } = current;
  const fraction = Math.floor((previous.cost * (before - (newest % before))) / before);
  const counts = before === windowMillis ? [current.cost, previous.cost] : [current.cost + fraction, 0];
  const ago = Math.floor(timeMillis / windowMillis) - Math.floor(newest / windowMillis);
  return [ago === 0 ? (counts[0] ?? 0) : 0, ago === 0 ? (counts[1] ?? 0) : ago === 1 ? (counts[0] ?? 0) : 0];
}

function isSameWindow({ windowMillis }: Rule, one: number, other: number): boolean {
  return Math.floor(one / windowMillis) === Math.floor(other / windowMillis);
}

/** The group time from which nothing granted in the window of that time counts. */
function endOf({ windowMillis }: Rule, timeMillis: number, steps: Steps): number {
  const end = (Math.floor(timeMillis / windowMillis) + 1) * windowMillis;
  return end - aheadAt(steps, timeMillis);
}

/**
 * The last run belongs to the window of the newest grant. A run before it was granted before a step of UTC. Without a
 * step, and for callers' timestamps, each counts in its own UTC window.
 */
function liveQuotas(rule: Rule, runs: readonly Run[], at: At): readonly Run[] {
  if (at.isEvent) return runs.filter((run) => at.timeMillis < endOf(rule, run.timeMillis, NO_STEPS));
  const groupMillis = at.timeMillis - at.utcAheadMillis;
  return runs.filter((run) => groupMillis < endOf(rule, run.timeMillis, at.steps));
}

/** The runs of a fixed window after a grant, made by any rule. */
function quotasAfter(rule: Rule, runs: readonly Run[], at: At, cost: number): readonly Run[] {
  const { timeMillis, steps, utcAheadMillis } = at;
  const live = liveQuotas(rule, runs, { ...at, isEvent: false }).filter((run) => run.cost > 0);
  const last = live.find((run) => run === runs.at(-1));
  const before = live.filter((run) => run !== last);
  const grant = { timeMillis, cost };
  if (last === undefined) return [...before, grant];
  const isSame = isSameWindow(rule, last.timeMillis, timeMillis);
  const isStepped = aheadAt(steps, last.timeMillis) !== utcAheadMillis;
  if (isSame && !isStepped) return [...before, { timeMillis, cost: last.cost + cost }];
  // Two carried runs count until the later one is out, so a run of another window is not merged with this one's.
  const isOther = before.some((run) => !isSameWindow(rule, run.timeMillis, last.timeMillis));
  if (isSame && isOther) return [...before, { ...last, cost: last.cost + cost }];
  const all = [...before, last];
  const ends = all.map((run) => endOf(rule, run.timeMillis, steps));
  const latest = all.findLast((_, i) => ends[i] === Math.max(...ends)) ?? last;
  return [{ timeMillis: latest.timeMillis, cost: costOf(all) }, grant];
}

/** How much of the capacity is used. */
export function spentAt(rule: Rule, runs: readonly Run[], at: At): number {
  switch (meterKindOf(rule)) {
    case 'bucket':
      return Math.ceil(levelAt(rule, runs, at) / at.windowMillis);
    case 'fixedWindow':
      return costOf(liveQuotas(rule, runs, at));
    case 'slidingCounter': {
      const [current, previous] = countsAt(rule, runs, at.timeMillis);
      const left = rule.windowMillis - (at.timeMillis % rule.windowMillis);
      return current + Math.floor((previous * left) / rule.windowMillis);
    }
    case 'granules':
      return costOf(liveRuns(runs.slice(0, -1), at));
    default:
      return costOf(liveRuns(runs, at));
  }
}

/** How long after that time at most `room` is used: usage never rises by itself. */
export function waitUntil(rule: Rule, runs: readonly Run[], at: At, room: number): number {
  if (room < 0) return Infinity;
  const isWithin = (wait: number): boolean =>
    spentAt(rule, runs, { ...at, timeMillis: at.timeMillis + wait }) <= room;
  if (isWithin(0)) return 0;
  let little = 0;
  let enough = 1;
  for (; !isWithin(enough); enough *= 2) little = enough;
  while (enough - little > 1) {
    const middle = Math.floor((little + enough) / 2);
    if (isWithin(middle)) enough = middle;
    else little = middle;
  }
  return enough;
}

/** The memory after a grant. A log forgets what is out of the longer window. */
export function afterGrant(
  rule: Rule,
  runs: readonly Run[],
  at: At & { readonly cost: number; readonly keptMillis: number },
): readonly Run[] {
  const { timeMillis, windowMillis, cost, keptMillis } = at;
  const kept = { timeMillis, windowMillis: keptMillis };
  switch (meterKindOf(rule)) {
    case 'bucket':
      return [{ timeMillis, cost: levelAt(rule, runs, at) + cost * windowMillis, windowMillis }];
    case 'fixedWindow':
      return quotasAfter(rule, runs, at, cost);
    case 'slidingCounter': {
      const [current, previous] = countsAt(rule, runs, timeMillis);
      const counted = { timeMillis, windowMillis: rule.windowMillis };
      return [
        { ...counted, cost: previous },
        { ...counted, cost: current + cost },
      ];
    }
    case 'granules': {
      const granule = rule.granularityMillis ?? 1;
      const log = liveRuns(runs.slice(0, -1), kept);
      const before = newestOf(runs.slice(0, -1));
      const stamp = Math.max(before, Math.ceil(timeMillis / granule) * granule);
      return [...withRun(log, { timeMillis: stamp, cost }), { timeMillis, cost: 0 }];
    }
    default:
      return withRun(liveRuns(runs, kept), { timeMillis, cost });
  }
}

/** The memory after a refund. All grants since then were made by the same rule, except for a plain log. */
export function afterRefund(
  rule: Rule,
  runs: readonly Run[],
  {
    timeMillis,
    cost,
    nowMillis,
  }: { readonly timeMillis: number; readonly cost: number; readonly nowMillis: number },
): readonly Run[] {
  const less = (run: Run, back: number): Run => ({ ...run, cost: Math.max(0, run.cost - back) });
  const lessAt = (stamp: number): Run[] =>
    runs.map((run) => (run.timeMillis === stamp ? less(run, cost) : run));
  const { windowMillis } = rule;
  const newest = newestOf(runs);
  const backMillis = Math.max(nowMillis, timeMillis - WEEK_MILLIS);
  const inWindow = (counted: readonly Run[]): readonly Run[] => {
    if (backMillis >= newest || !isSameWindow(rule, backMillis, newest)) return counted;
    return counted.map((run) => ({ ...run, timeMillis: backMillis }));
  };
  switch (meterKindOf(rule)) {
    case 'bucket': {
      const back = Math.max(0, cost - Math.ceil((rateOf(rule) * (newest - timeMillis)) / windowMillis));
      return runs.map((run) => less(run, back * (run.windowMillis ?? 1)));
    }
    case 'fixedWindow': {
      if (!isSameWindow(rule, timeMillis, newest)) return runs;
      const isBack = backMillis < newest && isSameWindow(rule, backMillis, newest);
      const made = isBack ? backMillis : newest;
      return runs.map((run, i) => (i === runs.length - 1 ? { ...less(run, cost), timeMillis: made } : run));
    }
    case 'slidingCounter': {
      const ago = Math.floor(newest / windowMillis) - Math.floor(timeMillis / windowMillis);
      const after = runs.map((run, i) => (i === 1 - ago ? less(run, cost) : run));
      return ago === 0 || ago === 1 ? inWindow(after) : after;
    }
    case 'granules': {
      const granule = rule.granularityMillis ?? 1;
      // The last run only records when the newest grant was made; it uses nothing.
      const made = runs.slice(-1);
      const log = lessAt(Math.ceil(timeMillis / granule) * granule).slice(0, -1);
      const after = backTo(backMillis, log);
      const stamp = newestOf(after);
      if (stamp === newestOf(log)) return [...after, ...made];
      const lastMillis = Math.max(backMillis, stamp - DAY_MILLIS + 1);
      return [...after, ...made.map((run) => ({ ...run, timeMillis: Math.min(run.timeMillis, lastMillis) }))];
    }
    default:
      return backTo(backMillis, lessAt(timeMillis));
  }
}

/** Empty runs are removed, and the newest one falls back to that time if the one before it is older. */
function backTo(millis: number, runs: readonly Run[]): readonly Run[] {
  const kept = withoutEmpty(runs);
  const [before, last] = [kept.at(-2), kept.at(-1)];
  if (last === undefined || last.cost > 0) return kept;
  if (before !== undefined && before.timeMillis >= millis) return kept.slice(0, -1);
  return [...kept.slice(0, -1), { ...last, timeMillis: Math.min(last.timeMillis, millis) }];
}

/** Removes empty runs, except the newest one, which keeps its time. */
export function withoutEmpty(runs: readonly Run[]): readonly Run[] {
  return runs.filter((run, i) => run.cost > 0 || i === runs.length - 1);
}

/** Grants of one time are one run. */
function withRun(runs: readonly Run[], run: Run): readonly Run[] {
  const last = runs.at(-1);
  if (last?.timeMillis !== run.timeMillis) return withoutEmpty([...runs, run]);
  return [...runs.slice(0, -1), { ...run, cost: last.cost + run.cost }];
}

/** The group time from which nothing is used, in a window of that length. */
export function idleAt(rule: Rule, runs: readonly Run[], windowMillis: number, steps: Steps): number {
  const newest = newestOf(runs);
  switch (meterKindOf(rule)) {
    case 'bucket':
      return newest + Math.ceil(levelAt(rule, runs, { timeMillis: newest, windowMillis }) / rateOf(rule));
    case 'fixedWindow':
      return Math.max(...runs.map((run) => endOf(rule, run.timeMillis, steps)));
    case 'slidingCounter':
      return (Math.floor(newest / rule.windowMillis) + 2) * rule.windowMillis;
    case 'granules':
      return newestOf(runs.slice(0, -1)) + windowMillis;
    default:
      return newest + windowMillis;
  }
}

/** How long a grant counts at most. */
export function reachMillisOf(rule: Rule, windowMillis: number): number {
  switch (meterKindOf(rule)) {
    case 'bucket':
      return Math.max(windowMillis, Math.ceil((capacityOf(rule) * windowMillis) / rateOf(rule)));
    case 'slidingCounter':
      return 2 * windowMillis;
    case 'granules':
      return windowMillis + (rule.granularityMillis ?? 1);
    default:
      return windowMillis;
  }
}

/** The model of sizes: docs/internals/limiter.md. */
export function bytesOf(rule: Rule, runs: readonly Run[]): number {
  switch (meterKindOf(rule)) {
    case 'slidingLog':
      return runs.length * RUN_BYTES;
    case 'granules':
      return GRANULAR_KEY_BYTES + (runs.length - 1) * RUN_BYTES;
    default:
      return 0;
  }
}
