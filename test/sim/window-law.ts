/**
 * The grants of one key respect its limit, in log time and in real time: no rolling window exceeds it, and other meters
 * keep their own promises.
 */
import type { Rule } from '../../src/api/rule.ts';
import { costSince, type Grant, type GroupLedger, realCostSince } from './group-ledger.ts';
import { brokenPromise, costAround, overflow } from './guarantees.ts';
import { groupWindowMillis } from './naive-keys.ts';
import { meterKindOf } from './naive-meters.ts';
import { check } from './story.ts';

/** A grant, and all earlier ones of its key that were not refunded. It is the last of them. */
interface Granted {
  readonly grants: readonly Grant[];
  readonly grant: Grant;
  readonly userId: string;
  readonly isEvent: boolean;
  readonly where: string;
}

export function checkWindow(group: GroupLedger, rule: Rule, granted: Granted): void {
  if (isLog(rule)) checkRolling(group, rule, granted);
  else if (isOrdered(granted.userId)) checkPromise(group, rule, granted);
}

function isLog(rule: Rule): boolean {
  return ['slidingLog', 'granules'].includes(meterKindOf(rule));
}

/** The time of the user never runs back, not even when the user was forgotten. */
function isOrdered(userId: string): boolean {
  return !userId.startsWith('mixed') && !userId.startsWith('event');
}

function checkRolling(group: GroupLedger, rule: Rule, granted: Granted): void {
  const { grants, grant, userId, isEvent, where } = granted;
  const forgotten = group.forgotten.get(`${rule.id}/${userId}`) ?? -Infinity;
  const window = isEvent ? rule.windowMillis : windowInGroupTime(group, rule);
  const logged = isOrdered(userId)
    ? costSince(grants, Math.max(forgotten, grant.timeMillis - window), Infinity)
    : costAround(grants, grant, { windowMillis: window, forgottenMillis: forgotten });
  check(
    logged <= rule.limit,
    () => `over-grant in log time: ${logged} of ${rule.limit} in ${window} ms, ${where}`,
  );
  if (grant.realMillis === undefined) return;
  const remembered =
    forgotten === -Infinity ? grants : grants.filter(({ timeMillis }) => timeMillis > forgotten);
  const real = realCostSince(remembered, grant.realMillis - rule.windowMillis);
  check(
    real <= rule.limit,
    () => `over-grant in real time: ${real} of ${rule.limit} in ${rule.windowMillis} ms, ${where}`,
  );
}

/** The promise of other meters, for all grants since the rule, or the key's own limit, last changed. */
function checkPromise(group: GroupLedger, rule: Rule, { grants: all, userId, where }: Granted): void {
  const changed = Math.max(group.changed.get(rule.id) ?? 0, group.ownChanged.get(userId) ?? 0);
  const grants = all.filter(({ index }) => index > changed);
  const inGroupTime = { windowMillis: windowInGroupTime(group, rule), roundingMillis: 0 };
  const broken = brokenPromise(rule, grants, inGroupTime);
  check(broken === undefined, () => `over-grant in log time: ${broken}, ${where}`);
  if (meterKindOf(rule) !== 'bucket') return;
  const real = grants.flatMap(({ realMillis, cost }) =>
    realMillis === undefined ? [] : [{ timeMillis: realMillis, cost }],
  );
  // Stamps are whole milliseconds.
  const tooMuch = overflow(rule, real, { windowMillis: rule.windowMillis, roundingMillis: 1 });
  check(tooMuch === undefined, () => `over-grant in real time: ${tooMuch}, ${where}`);
}

function windowInGroupTime(group: GroupLedger, rule: Rule): number {
  return groupWindowMillis(rule.windowMillis, group.table?.clockDriftPpm ?? 0);
}
