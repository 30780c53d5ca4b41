/**
 * Finds denials that were certainly wrong in real time: at no moment while the request was open could the limit have
 * been used up. They are legal during a fault, and an error in a healthy cluster.
 */
import { groupWindowMillis } from '../model.ts';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { type Budget, nameOf } from './budgets.ts';
import type { Fates } from './fates.ts';
import { Load } from './load.ts';
import { type CheckResult, Findings } from './result.ts';

export interface FalseDenialOptions {
  readonly driftPpm: number;
  readonly fates: Fates;
  readonly bands: readonly NemesisBand[];
  /** For this long after a fault, plus a window, a wrong denial still counts as its consequence. */
  readonly settleMillis: number;
  /** How much group time a planned change of leaders may lose. */
  readonly slackMillis: number;
}

const NANOS_PER_MILLI = 1e6;

export function checkFalseDenials(budgets: readonly Budget[], options: FalseDenialOptions): CheckResult {
  const findings = new Findings('false-denials');
  for (const budget of budgets) {
    // Callers' timestamps say nothing about real time.
    if (budget.hasEventTimes || budget.denials.length === 0) continue;
    const { windowMillis, limit } = budget;
    // Real time may also run slower than group time, by the same drift.
    const { driftPpm, slackMillis } = options;
    const liveMillis = groupWindowMillis(groupWindowMillis(windowMillis, driftPpm), driftPpm) + slackMillis;
    const settleNanos = (liveMillis + options.settleMillis) * NANOS_PER_MILLI;
    const load = possibleLoad(budget, liveMillis * NANOS_PER_MILLI, options.fates);
    for (const { invokeNanos, completeNanos, cost } of budget.denials) {
      findings.tally('denials');
      const end = completeNanos ?? Infinity;
      const most = load.most(invokeNanos, end);
      if (most + cost <= limit) {
        const isFaulty = options.bands.some((band) => overlaps(band, invokeNanos, end, settleNanos));
        findings.tally(isFaulty ? 'falseUnderFaults' : 'falseWhenHealthy');
        if (!isFaulty) {
          const at = (invokeNanos / NANOS_PER_MILLI).toFixed(3);
          findings.add(`${nameOf(budget)} denied at ${at} ms with at most ${most} of ${limit} spent`);
        }
      }
    }
  }
  return findings.result();
}

function possibleLoad({ grants, unknowns }: Budget, liveNanos: number, fates: Fates): Load {
  const changes: { at: number; by: number }[] = [];
  for (const { op, invokeNanos, completeNanos } of grants) {
    changes.push({ at: invokeNanos, by: op.cost }, { at: completeNanos + liveNanos, by: -op.cost });
  }
  for (const { op, invokeNanos } of unknowns) {
    // It is unknown when the request took effect, so it may count forever.
    const fate = fates.get(op);
    const times = fate?.kind === 'granted' ? fate.at.length : 1;
    if (fate?.kind !== 'uncharged') changes.push({ at: invokeNanos, by: op.cost * times });
  }
  return new Load(changes);
}
