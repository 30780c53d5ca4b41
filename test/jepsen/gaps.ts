/** Finds spans of unavailability: per group of users, spans in which requests were made and none was decided. */
import type { Operation } from './history.ts';

export interface Gap {
  readonly group: number;
  readonly startNanos: number;
  readonly endNanos: number;
}

/** Gaps of at least `minMillis`, ordered by their start. Users who never got a decision have no group and no gaps. */
export function unavailabilityGaps(history: readonly Operation[], minMillis: number): Gap[] {
  const groupOf = new Map<string, number>();
  for (const { user, group } of history) if (group !== null) groupOf.set(user, group);
  const decided = new Map<number, number[]>();
  const refused = new Map<number, number[]>();
  for (const { user, class: outcome, completeNanos } of history) {
    const group = groupOf.get(user);
    if (group === undefined || completeNanos === null) continue;
    const ends = outcome === 'ok' ? decided : refused;
    const list = ends.get(group);
    if (list === undefined) ends.set(group, [completeNanos]);
    else list.push(completeNanos);
  }
  const gaps: Gap[] = [];
  for (const [group, ends] of decided) {
    ends.sort((a, b) => a - b);
    const others = (refused.get(group) ?? []).sort((a, b) => a - b);
    let next = 0;
    for (let i = 1; i < ends.length; i += 1) {
      const [startNanos, endNanos] = [ends[i - 1] ?? 0, ends[i] ?? 0];
      while ((others[next] ?? Infinity) <= startNanos) next += 1;
      const isAsked = (others[next] ?? Infinity) < endNanos;
      if (isAsked && endNanos - startNanos >= minMillis * 1e6) gaps.push({ group, startNanos, endNanos });
    }
    const last = ends.at(-1) ?? 0;
    const lastRefused = others.at(-1) ?? 0;
    if (lastRefused - last >= minMillis * 1e6) gaps.push({ group, startNanos: last, endNanos: lastRefused });
  }
  return gaps.sort((a, b) => a.startNanos - b.startNanos);
}
