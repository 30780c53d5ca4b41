/**
 * Judges a cluster that was restored from a backup of the run. It grants nothing for a full window, because nothing is
 * known about grants after the backup. Then it grants again. Together with the grants in the backup it never exceeds a
 * limit in one window of group time, and group time continues from the backup.
 */
import type { Backup } from '../backup-history.ts';
import type { Operation } from '../history.ts';
import type { JointHistory, LimitAsked } from '../joint-history.ts';
import type { Restoration, RestoredSubject } from '../restored-cluster.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

export interface RestoredOptions {
  readonly history: readonly Operation[];
  readonly joint: JointHistory;
  readonly backups: readonly Backup[];
}

interface Charge {
  readonly timeMillis: number;
  readonly cost: number;
}

const NANOS_PER_MILLI = 1e6;

export function checkRestored(restoration: Restoration | undefined, options: RestoredOptions): CheckResult {
  if (restoration === undefined) return skipped('restored', 'no backup was restored');
  const findings = new Findings('restored');
  const { directory, error, subjects, startedNanos } = restoration;
  if (error !== null) findings.add(`${directory} could not be restored: ${error}`);
  const backup = options.backups.find((each) => each.directory === directory);
  if (backup === undefined) findings.add(`${directory} is no backup of this run`);
  const asked = new Set(subjects.flatMap(({ limits }) => limits.map(limitName)));
  const held = chargesIn(backup, asked, options);
  let restoredDenials = 0;
  for (const subject of subjects) {
    restoredDenials += subject.answers.filter(({ isRestored }) => isRestored).length;
    checkSaturated(subject, { startedNanos, backup }, findings);
    checkWindows(subject, held, findings);
    if (!subject.answers.some(({ allowed }) => allowed))
      findings.add(
        `${nameOf(subject)} was never granted anything again, with ${subject.answers.length} answers`,
      );
  }
  findings.tally('subjects', subjects.length);
  findings.tally('restoredDenials', restoredDenials);
  if (error === null && restoredDenials === 0)
    return findings.result('unknown', 'no denial said that the cluster was restored');
  return findings.result();
}

function limitName({ rule, key }: Pick<LimitAsked, 'rule' | 'key'>): string {
  return `${rule} ${key}`;
}

function nameOf({ limits }: RestoredSubject): string {
  return `${limits[0]?.key} under ${limits.map(({ rule }) => rule).join(', ')}`;
}

/**
 * Grants that the backup may miss were made before the processes of the restored cluster started. Group time continues
 * from the backup, so a window begins there at the earliest.
 */
function checkSaturated(
  subject: RestoredSubject,
  { startedNanos, backup }: { readonly startedNanos: number; readonly backup: Backup | undefined },
  findings: Findings,
): void {
  const { limits, answers } = subject;
  const windowMillis = Math.max(...limits.map((limit) => limit.windowMillis));
  const first = answers.find(({ allowed }) => allowed);
  if (first === undefined) return;
  const { completeNanos, partition, timeMillis } = first;
  const name = nameOf(subject);
  const realMillis = (completeNanos - startedNanos) / NANOS_PER_MILLI;
  const group = backup?.groups.find((each) => each.group - 1 === partition);
  const groupMillis = group === undefined ? Infinity : (timeMillis ?? Infinity) - group.timeMillis;
  for (const [millis, since] of [
    [realMillis, 'the start'],
    [groupMillis, "the backup's time"],
  ] as const)
    if (millis < windowMillis)
      findings.add(
        `${name} was granted something ${Math.round(millis)} ms after ${since}, within a window of ${windowMillis} ms`,
      );
}

/** Checks the windows together with earlier grants, by group time. */
function checkWindows(
  subject: RestoredSubject,
  held: ReadonlyMap<string, readonly Charge[]>,
  findings: Findings,
): void {
  const granted = subject.answers
    .filter(({ allowed }) => allowed)
    .flatMap(({ timeMillis }) => (timeMillis === null ? [] : [{ timeMillis, cost: 1 }]));
  for (const { rule, key, windowMillis, limit } of subject.limits) {
    const all = [...(held.get(limitName({ rule, key })) ?? []), ...granted];
    for (const { timeMillis: at } of granted) {
      const cost = all
        .filter(({ timeMillis }) => timeMillis > at - windowMillis && timeMillis <= at)
        .reduce((sum, charge) => sum + charge.cost, 0);
      if (cost <= limit) continue;
      findings.add(`${key} under ${rule}: ${cost} of ${limit} within ${windowMillis} ms until ${at} ms`);
      break;
    }
  }
}

/**
 * The charges that clients know to be in the backup, by rule and key. Refunded grants are included: their windows are
 * over before the first grant.
 */
function chargesIn(
  backup: Backup | undefined,
  asked: ReadonlySet<string>,
  { history, joint }: RestoredOptions,
): ReadonlyMap<string, Charge[]> {
  const indices = new Map(backup?.groups.map(({ group, index }) => [group, index]));
  const charges = new Map<string, Charge[]>();
  const places = new Set<string>();
  const add = (limit: string, place: string, charge: Charge): void => {
    // A repeated answer reports the same grant.
    if (!asked.has(limit) || places.has(`${limit} ${place}`)) return;
    places.add(`${limit} ${place}`);
    const known = charges.get(limit);
    if (known === undefined) charges.set(limit, [charge]);
    else known.push(charge);
  };
  const isHeld = (partition: number, index: number): boolean => index <= (indices.get(partition + 1) ?? 0);
  for (const { allowed, group, index, position, timeMillis, rule, user, cost } of history) {
    if (allowed !== true || group === null || index === null || timeMillis === null) continue;
    if (isHeld(group, index))
      add(limitName({ rule, key: `user=${user}` }), `${index}/${position}`, { timeMillis, cost });
  }
  for (const { allowed, receipt, limits, cost } of joint.asks) {
    if (allowed !== true || receipt === null || !isHeld(receipt.group, receipt.index)) continue;
    const { index, position, timeMillis } = receipt;
    // The receipt says nothing about limits in other partitions.
    const [first] = limits;
    for (const limit of limits)
      if (limit.key === first?.key) add(limitName(limit), `${index}/${position}`, { timeMillis, cost });
  }
  return charges;
}
