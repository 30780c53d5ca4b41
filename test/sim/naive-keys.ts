/** The keys of one rule in the naive limiter: the effect of a grant on them, and when they may be forgotten. */
import type { Rule } from '../../src/api/rule.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { Asked } from './id-ledger.ts';
import { runsWith } from './naive-inheritance.ts';
import type { Judged } from './naive-judgement.ts';
import type { Known } from './naive-known.ts';
import { afterGrant, bytesOf, idleAt, newestOf, reachMillisOf, type Run } from './naive-meters.ts';
import type { Key, KeysOfRule, RuleState } from './naive-state.ts';
import type { Steps } from './naive-utc.ts';

const DAY_MILLIS = 86_400_000;
const LATE_MILLIS = 60_000;
/** The model of sizes: docs/internals/limiter.md. */
export const KEY_BYTES = 96;

/** The product's promise in group time, written again on purpose: longer windows hide drift and rounding. */
export function groupWindowMillis(windowMillis: number, driftPpm: number): number {
  const leaderPpm = driftPpm + Math.ceil(driftPpm / 5);
  return windowMillis + Math.ceil((windowMillis * leaderPpm) / 1_000_000) + 1;
}

/** The settings of a rule from entry `index` on. */
export function inForceFrom(
  index: number,
  {
    rule,
    table,
    before,
    sinceMillis,
  }: {
    readonly rule: Rule;
    readonly table: RuleTable;
    readonly before: RuleState | undefined;
    readonly sinceMillis: number;
  },
): Omit<RuleState, 'isEventTimed' | 'evictedThroughMillis'> {
  const windowMillis = groupWindowMillis(rule.windowMillis, table.clockDriftPpm);
  const isSame = before !== undefined && JSON.stringify(before.rule) === JSON.stringify(rule);
  const ruledIndex = isSame ? before.ruledIndex : index;
  return { rule, groupWindowMillis: windowMillis, isActive: true, ruledIndex, sinceMillis };
}

export function afterJudged(
  known: Pick<Known, 'rule' | 'groupWindowMillis' | 'runs'>,
  judged: Judged,
  cost: number,
): readonly Run[] {
  const { rule, groupWindowMillis } = known;
  const { aheadMillis, inherited } = judged;
  const keptMillis = groupWindowMillis + aheadMillis;
  const runs = runsWith(inherited, known, judged) ?? [];
  return afterGrant(rule, runs, { ...judged, cost, keptMillis });
}

/** Without the memory of its request id. */
export function bytesToGrant(known: Known, judged: Judged, asked: Asked): number {
  const { rule, runs } = known;
  const after = bytesOf(rule, afterJudged(known, judged, asked.cost));
  if (runs === undefined) return KEY_BYTES + asked.userId.length + after;
  return Math.max(0, after - bytesOf(rule, runs));
}

/** How much longer a key is kept because it gets a grant in the near epoch after one in a far epoch. */
export function keptAfterMillis(
  { state }: KeysOfRule,
  {
    before,
    judged,
    nearEpochMillis,
  }: {
    readonly before: readonly Run[] | undefined;
    readonly judged: Judged;
    readonly nearEpochMillis: number;
  },
): number {
  const isFar = (millis: number): boolean => millis < nearEpochMillis;
  const leavesFar = before !== undefined && isFar(newestOf(before)) && !isFar(judged.timeMillis);
  return leavesFar ? Math.max(DAY_MILLIS, reachMillisOf(state.rule, state.groupWindowMillis)) : 0;
}

/** @param rule as it applies to the key */
export function isIdle(
  { state }: KeysOfRule,
  key: Key,
  rule: Rule,
  {
    nowMillis,
    nearEpochMillis,
    steps,
  }: { readonly nowMillis: number; readonly nearEpochMillis: number; readonly steps: Steps },
): boolean {
  const { groupWindowMillis: windowMillis } = state;
  const runs = key.runs.at(-1)?.value ?? [];
  const reachMillis = reachMillisOf(rule, windowMillis);
  if (newestOf(runs) < nearEpochMillis)
    return key.madeMillis + Math.max(DAY_MILLIS, reachMillis) <= nowMillis;
  const lateMillis = state.isEventTimed ? LATE_MILLIS : 0;
  const goneMillis = idleAt(rule, runs, windowMillis, steps);
  return Math.max(goneMillis, key.madeMillis + reachMillis) + lateMillis <= nowMillis;
}
