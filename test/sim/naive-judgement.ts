/**
 * What README.md and src/limiter/README.md promise of one decision, written down again as simply as can be: grants are
 * a list, and every question is answered by going through all of it. It shares no code with the product.
 */
import type { Conflict } from '../../src/limiter/fingerprint.ts';
import type { Decision, Refusal } from '../../src/limiter/decision.ts';
import type { Rule } from '../../src/api/rule.ts';
import type { Asked } from './id-ledger.ts';

export interface Run {
  readonly timeMillis: number;
  readonly cost: number;
}

/** What a decision depends on. */
export interface Known {
  readonly rule: Rule;
  /** The rule's window in group time. */
  readonly groupWindowMillis: number;
  /** All that was forgotten of the near epoch is out of the window then. */
  readonly evictedThroughMillis: number;
  readonly nearEpochMillis: number;
  /** Granted to the key, oldest first; undefined if nothing is known of it. */
  readonly runs: readonly Run[] | undefined;
}

export interface Place {
  readonly index: number;
  readonly term: number;
  readonly position: number | undefined;
}

export interface Judged {
  readonly isEvent: boolean;
  /** The time it asks for, and the time it is judged at. */
  readonly askedMillis: number;
  readonly timeMillis: number;
  readonly windowMillis: number;
  readonly live: number;
  readonly isHeld: boolean;
  readonly fits: boolean;
}

export function newestOf(runs: readonly Run[]): number {
  return runs.at(-1)?.timeMillis ?? 0;
}

/** A grant exactly as old as the window is out. */
function liveAt(runs: readonly Run[], timeMillis: number, windowMillis: number): number {
  let cost = 0;
  for (const run of runs) if (run.timeMillis > timeMillis - windowMillis) cost += run.cost;
  return cost;
}

export function judge(known: Known, asked: Asked, nowMillis: number): Judged {
  const { rule, groupWindowMillis, runs } = known;
  const isEvent = asked.timestampMillis !== undefined && rule.clock === 'request';
  const askedMillis = isEvent ? (asked.timestampMillis ?? 0) : nowMillis;
  const windowMillis = isEvent ? rule.windowMillis : groupWindowMillis;
  // Something may have been forgotten of an unknown key, and of one that is known from a far epoch alone.
  const isFar = runs === undefined || newestOf(runs) < known.nearEpochMillis;
  const overlaps = askedMillis > known.nearEpochMillis - groupWindowMillis;
  const forgottenMillis = isFar && overlaps ? known.evictedThroughMillis : -Infinity;
  // A key's time never runs back.
  const timeMillis = Math.max(askedMillis, runs === undefined ? -Infinity : newestOf(runs), forgottenMillis);
  const isHeld = timeMillis > askedMillis && (!isEvent || askedMillis < forgottenMillis);
  const live = liveAt(runs ?? [], timeMillis, windowMillis);
  const fits = !isHeld && live + asked.cost <= rule.limit;
  return { isEvent, askedMillis, timeMillis, windowMillis, live, isHeld, fits };
}

/** How long after the time it was judged at `cost` more would fit. It does when a grant leaves, or never. */
function waitFor(
  runs: readonly Run[],
  { timeMillis, windowMillis }: Judged,
  cost: number,
  limit: number,
): number {
  const moments = [timeMillis, ...runs.map((run) => run.timeMillis + windowMillis)];
  const fitting = moments.find((at) => at >= timeMillis && liveAt(runs, at, windowMillis) + cost <= limit);
  return fitting === undefined ? Infinity : fitting - timeMillis;
}

export function denialOf({ rule, runs = [] }: Known, judged: Judged, cost: number, place: Place): Decision {
  const { askedMillis, timeMillis, windowMillis, live, isHeld } = judged;
  const wait = waitFor(runs, judged, cost, rule.limit);
  const spent = runs.filter(({ cost: each }) => each > 0);
  const empty = spent.length === 0 ? 0 : Math.max(0, newestOf(spent) + windowMillis - timeMillis);
  // Waits count from the time that was asked for; who need not wait need not.
  const since = (millis: number): number => (millis === 0 && !isHeld ? 0 : millis + timeMillis - askedMillis);
  return {
    allowed: false,
    ruleId: rule.id,
    limit: rule.limit,
    windowMillis: rule.windowMillis,
    remaining: isHeld ? 0 : Math.max(0, rule.limit - live),
    retryAfterMillis: wait === Infinity ? rule.windowMillis : since(wait),
    resetMillis: since(empty),
    decided: receiptOf(place, timeMillis),
  };
}

/** `runs` holds the grant already. */
export function grantOf(
  rule: Rule,
  judged: Judged,
  granted: { readonly runs: readonly Run[]; readonly cost: number; readonly place: Place },
): Decision {
  const { askedMillis, timeMillis, windowMillis, live } = judged;
  const remaining = rule.limit - live - granted.cost;
  const wait = remaining > 0 ? 0 : waitFor(granted.runs, judged, 1, rule.limit);
  const late = timeMillis - askedMillis;
  return {
    allowed: true,
    ruleId: rule.id,
    limit: rule.limit,
    windowMillis: rule.windowMillis,
    remaining,
    retryAfterMillis: wait === 0 ? 0 : wait + late,
    resetMillis: windowMillis + late,
    decided: receiptOf(granted.place, timeMillis),
  };
}

export function refused(
  refusal: Refusal,
  at: { readonly ruleId: string; readonly place: Place; readonly nowMillis: number },
  conflict?: Conflict,
): Decision {
  return {
    allowed: false,
    ruleId: at.ruleId,
    limit: 0,
    windowMillis: 0,
    remaining: 0,
    retryAfterMillis: 0,
    resetMillis: 0,
    decided: receiptOf(at.place, at.nowMillis),
    refusal,
    ...(conflict !== undefined && { conflict }),
  };
}

/** What is told of a refund: of which grant, or of none. */
export function refundOf(
  grant: { readonly decision: Decision; readonly cost: number } | undefined,
  place: Place,
  nowMillis: number,
): Decision {
  return {
    allowed: false,
    ruleId: grant?.decision.ruleId ?? '',
    limit: 0,
    windowMillis: 0,
    remaining: 0,
    retryAfterMillis: 0,
    resetMillis: 0,
    decided: grant?.decision.decided ?? receiptOf(place, nowMillis),
    refund: { refunded: grant !== undefined, cost: grant?.cost ?? 0 },
  };
}

function receiptOf({ index, term, position }: Place, timeMillis: number): Decision['decided'] {
  return { index, term, timeMillis, ...(position !== undefined && { position }) };
}

/** How a request differs from the one that has its id: the first of rule, cost and timestamp. */
export function differenceOf(first: Asked, other: Asked): Conflict | undefined {
  if (first.rule !== other.rule) return { field: 'rule', first: first.rule === '' ? undefined : first.rule };
  if (first.cost !== other.cost) return { field: 'cost', first: first.cost };
  if (first.timestampMillis !== other.timestampMillis)
    return { field: 'timestampMillis', first: first.timestampMillis };
  return undefined;
}

/** Equal for two decisions that say the same. */
export function sayingOf(decision: Decision): string {
  const { allowed, ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis } = decision;
  const { index, term, position = null, timeMillis } = decision.decided;
  const { refusal = '', conflict } = decision;
  const numbers = [limit, windowMillis, remaining, retryAfterMillis, resetMillis];
  return JSON.stringify([
    allowed,
    ruleId,
    numbers,
    [index, term, position, timeMillis],
    [refusal, conflict?.field, conflict?.first],
  ]);
}
