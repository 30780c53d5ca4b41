/**
 * How fixed windows follow UTC by what the log records of it. Written again from docs/internals/limiter.md; it
 * uses no code of the product.
 */
import type { Rule } from '../../src/api/rule.ts';

/** After group time `groupMillis` UTC was this much ahead of it. In order; the first step is that of the beginning. */
export interface Step {
  readonly groupMillis: number;
  readonly aheadMillis: number;
}
export type Steps = readonly Step[];

export const NO_STEPS: Steps = [{ groupMillis: -1, aheadMillis: 0 }];

export function aheadNow(steps: Steps): number {
  return Math.max(...steps.map(({ aheadMillis }) => aheadMillis));
}

/** The lead at this UTC time. */
export function aheadAt(steps: Steps, utcMillis: number): number {
  let aheadMillis = 0;
  for (const step of steps) if (utcMillis > step.groupMillis + aheadMillis) ({ aheadMillis } = step);
  return aheadMillis;
}

/** How far the time of the rule's keys is ahead of group time. */
export function axisOf({ meter }: Rule, steps: Steps): number {
  return meter === 'fixedWindow' ? aheadNow(steps) : 0;
}
