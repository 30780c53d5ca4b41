/**
 * What the log says of how late it is, as fixed windows go by it: written down again from docs/internals/limiter.md. It shares no code with
 * the product.
 */
import type { Rule } from '../../src/api/rule.ts';

/** After group time `groupMillis` UTC was so much ahead of it. In order; the first is of the beginning. */
export interface Step {
  readonly groupMillis: number;
  readonly aheadMillis: number;
}
export type Steps = readonly Step[];

export const NO_STEPS: Steps = [{ groupMillis: -1, aheadMillis: 0 }];

export function aheadNow(steps: Steps): number {
  return Math.max(...steps.map(({ aheadMillis }) => aheadMillis));
}

/** What it was when it was so late in UTC. */
export function aheadAt(steps: Steps, utcMillis: number): number {
  let aheadMillis = 0;
  for (const step of steps) if (utcMillis > step.groupMillis + aheadMillis) ({ aheadMillis } = step);
  return aheadMillis;
}

/** By how much the time of the rule's keys is ahead of group time. */
export function axisOf({ meter }: Rule, steps: Steps): number {
  return meter === 'fixedWindow' ? aheadNow(steps) : 0;
}
