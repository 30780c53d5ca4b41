/**
 * Prometheus metrics about the answers of one node's listeners, and about the rules. Labels are rules and outcomes,
 * never users.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import { USAGE_OUTCOMES, type UsageColumn, type UsageOutcome } from '../api/usage.ts';
import { RECENT_MINUTES, type AlertFigures } from '../usage/recent-figures.ts';
import type { ListenerUsage } from './listener-usage.ts';

function isOutcome(column: UsageColumn): column is UsageOutcome {
  const outcomes: readonly string[] = USAGE_OUTCOMES;
  return outcomes.includes(column);
}

const RECENT = `over the last ${RECENT_MINUTES} minutes`;
/** Name of a gauge, the figure that it shows, and its help text. */
const ALERTS: readonly (readonly [string, keyof AlertFigures, string])[] = [
  ['quorate_limit_hit_ratio', 'limitHitRatio', `Denials divided by decisions, ${RECENT}.`],
  [
    'quorate_request_p99_seconds',
    'p99Seconds',
    `99th percentile of answer times, ${RECENT}; every eighth answer is timed.`,
  ],
  ['quorate_availability_ratio', 'availability', `Decisions divided by requests, ${RECENT}.`],
  [
    'quorate_wrong_denial_ratio_max',
    'wrongDenialRatioMax',
    `Upper bound of the fraction of requests that were blocked although their limit had room, ${RECENT}.`,
  ],
];

/** Registers the metrics. */
export function addUsageMetrics(usage: ListenerUsage, registry: Registry): void {
  const registers = [registry];
  const decisions: Counter = new Counter({
    name: 'quorate_decisions_total',
    help: 'Answers of all listeners by rule; unavailable: no partition could decide; degraded: a fail mode did.',
    labelNames: ['rule', 'outcome'],
    registers,
    collect() {
      decisions.reset();
      for (const [rule, outcome, count] of usage.totals())
        if (isOutcome(outcome)) decisions.inc({ rule, outcome }, count);
    },
  });
  const shadows: Counter = new Counter({
    name: 'quorate_shadow_decisions_total',
    help: 'Decisions of shadow rules on requests that all other rules let through: wouldAllow, wouldDeny.',
    labelNames: ['rule', 'outcome'],
    registers,
    collect() {
      shadows.reset();
      for (const [rule, outcome, count] of usage.totals())
        if (!isOutcome(outcome)) shadows.inc({ rule, outcome }, count);
    },
  });
  const limits: Gauge = new Gauge({
    name: 'quorate_rule_limit',
    help: 'Limit of a rule in force: cost per key and window.',
    labelNames: ['rule'],
    registers,
    collect() {
      limits.reset();
      for (const { id, limit } of usage.rules?.rules ?? []) limits.set({ rule: id }, limit);
    },
  });
  const windows: Gauge = new Gauge({
    name: 'quorate_rule_window_seconds',
    help: 'Window of a rule in force, in seconds.',
    labelNames: ['rule'],
    registers,
    collect() {
      windows.reset();
      for (const { id, windowMillis } of usage.rules?.rules ?? [])
        windows.set({ rule: id }, windowMillis / 1_000);
    },
  });
  for (const [name, figure, help] of ALERTS) {
    const metric: Gauge = new Gauge({
      name,
      help,
      registers,
      collect: () => metric.set(usage.alertFigures[figure]),
    });
  }
}
