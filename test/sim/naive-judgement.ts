/**
 * One decision as README.md and docs/internals/limiter.md promise it, written again as simply as possible: grants are a
 * list, and every question goes through all of it. It uses no code of the product.
 */
import type { CustomerRecord } from '../../src/api/customer-record.ts';
import type { Conflict } from '../../src/limiter/question.ts';
import type { Decision, Refusal } from '../../src/limiter/decision.ts';
import type { LimitStatus } from '../../src/api/answer.ts';
import type { Rule } from '../../src/api/rule.ts';
import type { Asked } from './id-ledger.ts';
import { reportedAt, wordsOfRecord } from './naive-record.ts';
import type { Known, KnownByMeter } from './naive-known.ts';
import { heardOf, type Inherited, inheritedOf, newestHeard } from './naive-inheritance.ts';
import {
  type At,
  atTime,
  capacityOf,
  newestOf,
  reachMillisOf,
  type Run,
  spentAt,
  waitUntil,
} from './naive-meters.ts';
import { axisOf } from './naive-utc.ts';

const WEEK_MILLIS = 604_800_000;

export interface Place {
  readonly index: number;
  readonly term: number;
  readonly position: number | undefined;
  /** The version in force there. */
  readonly rulesVersion: number;
}

export interface Judged extends At {
  /** The time of the request; it is judged at `timeMillis`. */
  readonly askedMillis: number;
  /** How far it is ahead of group time, if the key is kept longer because of that. */
  readonly aheadMillis: number;
  readonly live: number;
  /** How long after that time a grant of former meters still counts. */
  readonly retiredMillis: number;
  readonly inherited: Inherited | undefined;
  readonly isHeld: boolean;
  readonly fits: boolean;
}

export function judge(known: Known, asked: Asked, nowMillis: number): Judged {
  const { rule, groupWindowMillis, retired, steps } = known;
  const isEvent = asked.timestampMillis !== undefined && rule.clock === 'request';
  const askedMillis = isEvent ? (asked.timestampMillis ?? 0) : nowMillis + axisOf(rule, steps);
  // The offset that converts a time of another meter.
  const later = (other: Rule): number => (isEvent ? 0 : axisOf(rule, steps) - axisOf(other, steps));
  const windowMillis = isEvent ? rule.windowMillis : groupWindowMillis;
  const meters = [known, ...retired];
  const forgottenMillis = Math.max(
    ...meters.map((one) => forgottenOf(one, askedMillis - later(one.rule), known) + later(one.rule)),
  );
  // The time of a key never runs back.
  const newest = meters.map(({ rule: its, runs }) =>
    runs === undefined ? -Infinity : newestOf(runs) + later(its),
  );
  const heard = heardOf(known, nowMillis);
  const timeMillis = Math.max(askedMillis, ...newest, forgottenMillis, newestHeard(heard, later));
  const aheadMillis = Math.min(Math.max(0, timeMillis - nowMillis), WEEK_MILLIS);
  const isHeld = timeMillis > askedMillis && (!isEvent || askedMillis < forgottenMillis);
  const at = atTime(timeMillis, windowMillis, steps, isEvent);
  let live = spentAt(rule, known.runs ?? [], at);
  let retiredMillis = 0;
  for (const { rule: before, groupWindowMillis: window, runs = [] } of retired) {
    const then = atTime(timeMillis - later(before), isEvent ? before.windowMillis : window, steps, isEvent);
    live += spentAt(before, runs, then);
    retiredMillis = Math.max(retiredMillis, waitUntil(before, runs, then, 0));
  }
  const inherited = inheritedOf(known, heard, { at, later }, live);
  live += inherited?.cost ?? 0;
  const fits = !isHeld && live + asked.cost <= capacityOf(rule);
  const times = { ...at, askedMillis, aheadMillis };
  return { ...times, live, retiredMillis, inherited, isHeld, fits };
}

/** For an unknown key, or one known only from a far epoch, something may have been forgotten. */
function forgottenOf(
  { rule, groupWindowMillis, evictedThroughMillis, runs }: KnownByMeter,
  askedMillis: number,
  { nearEpochMillis, steps }: Pick<Known, 'nearEpochMillis' | 'steps'>,
): number {
  if (evictedThroughMillis === 0) return -Infinity;
  const isFar = runs === undefined || newestOf(runs) < nearEpochMillis;
  const overlaps = askedMillis > nearEpochMillis - reachMillisOf(rule, groupWindowMillis);
  return isFar && overlaps ? evictedThroughMillis + axisOf(rule, steps) : -Infinity;
}

export function denialOf({ rule, ...known }: Known, judged: Judged, cost: number, place: Place): Decision {
  const { askedMillis, timeMillis, live, inherited, isHeld, fits } = judged;
  const runs = inherited?.runs ?? known.runs ?? [];
  const isOther = inherited !== undefined && inherited.runs === undefined;
  const retiredMillis = Math.max(judged.retiredMillis, isOther ? inherited.emptyMillis : 0);
  const capacity = capacityOf(rule);
  // Other limits may deny a request that fits here, and a peek reports this wait too.
  const wait = fits ? 0 : Math.max(waitUntil(rule, runs, judged, capacity - cost), retiredMillis);
  const empty = Math.max(waitUntil(rule, runs, judged, 0), retiredMillis);
  // Waits count from the time of the request; a wait of 0 stays 0.
  const since = (millis: number): number => (millis === 0 && !isHeld ? 0 : millis + timeMillis - askedMillis);
  return {
    allowed: false,
    ruleId: rule.id,
    limit: rule.limit,
    windowMillis: rule.windowMillis,
    remaining: isHeld ? 0 : Math.max(0, capacity - live),
    retryAfterMillis: wait === Infinity ? rule.windowMillis : since(wait),
    resetMillis: since(empty),
    decided: receiptOf(place, timeMillis),
    rulesVersion: place.rulesVersion,
  };
}

/** `runs` already holds the grant. */
export function grantOf(
  rule: Rule,
  judged: Judged,
  granted: {
    readonly runs: readonly Run[];
    readonly cost: number;
    readonly isSettled: boolean;
    readonly place: Place;
  },
): Decision {
  const { askedMillis, timeMillis, live, retiredMillis } = judged;
  const { runs, cost, isSettled, place } = granted;
  const capacity = capacityOf(rule);
  const remaining = isSettled ? Math.max(0, capacity - live - cost) : capacity - live - cost;
  const since = (millis: number): number => (millis === 0 ? 0 : millis + timeMillis - askedMillis);
  const wait = remaining > 0 ? 0 : Math.max(waitUntil(rule, runs, judged, capacity - 1), retiredMillis);
  // A settled request does not wait.
  const queued = isSettled ? 0 : since(waitUntil(rule, runs, judged, capacity - (rule.queue ?? 0)));
  return {
    allowed: true,
    ruleId: rule.id,
    limit: rule.limit,
    windowMillis: rule.windowMillis,
    remaining,
    retryAfterMillis: wait === Infinity ? rule.windowMillis : since(wait),
    resetMillis: since(Math.max(waitUntil(rule, runs, judged, 0), retiredMillis)),
    decided: receiptOf(place, timeMillis),
    rulesVersion: place.rulesVersion,
    ...(queued > 0 && { waitMillis: queued }),
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
    rulesVersion: at.place.rulesVersion,
    refusal,
    ...(conflict !== undefined && { conflict }),
  };
}

/**
 * The answer for a blocked key reports no limit.
 *
 * @param retryAfterMillis until the block ends; 0 where it has no end
 */
export function blockedBy(
  ruleId: string,
  retryAfterMillis: number,
  at: { readonly place: Place; readonly nowMillis: number },
): Decision {
  return { ...unreported(at), ruleId, retryAfterMillis, isBlocked: true };
}

/** The request was matched with another record than this one. */
export function changedTo(
  record: CustomerRecord,
  at: { readonly ruleId: string; readonly place: Place; readonly nowMillis: number },
): Decision {
  return {
    ...refused('customer_changed', at),
    customer: { isDone: false, record: reportedAt(record, at.nowMillis) },
  };
}

/** The answer to an operator; undefined: there is no room for the record. */
export function reportOf(
  customer: { readonly isDone: boolean; readonly record: CustomerRecord } | undefined,
  at: { readonly place: Place; readonly nowMillis: number },
): Decision {
  return customer === undefined
    ? refused('at_capacity', { ruleId: '', ...at })
    : { ...unreported(at), customer };
}

function unreported({ place, nowMillis }: { readonly place: Place; readonly nowMillis: number }): Decision {
  const { refusal: _, ...reported } = refused('at_capacity', { ruleId: '', place, nowMillis });
  return reported;
}

/** The answer to a refund: the grant it refunded, or none. */
export function refundOf(
  grant:
    | { readonly decision: Decision; readonly cost: number; readonly attempt: number | undefined }
    | undefined,
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
    rulesVersion: grant?.decision.rulesVersion ?? place.rulesVersion,
    refund: {
      refunded: grant !== undefined,
      cost: grant?.cost ?? 0,
      ...(grant?.attempt !== undefined && { attempt: grant.attempt }),
    },
  };
}

function receiptOf({ index, term, position }: Place, timeMillis: number): Decision['decided'] {
  return { index, term, timeMillis, ...(position !== undefined && { position }) };
}

/**
 * How a request differs from the one that has its id: in the digest if it has one, else the first of rule, cost and
 * timestamp.
 */
export function differenceOf(first: Asked, other: Asked): Conflict | undefined {
  if (first.askedDigest !== other.askedDigest) return { field: 'descriptors', first: undefined };
  if (first.askedDigest !== undefined) return undefined;
  if (first.rule !== other.rule) return { field: 'rule', first: first.rule === '' ? undefined : first.rule };
  if (first.cost !== other.cost) return { field: 'cost', first: first.cost };
  if (first.timestampMillis !== other.timestampMillis)
    return { field: 'timestampMillis', first: first.timestampMillis };
  return undefined;
}

/** Equal for two limits with the same status. */
export function wordsOfStatus(limitStatus: LimitStatus): string {
  const { ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis } = limitStatus;
  return JSON.stringify([ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis]);
}

/** Equal for two decisions that a client cannot distinguish. */
export function sayingOf(decision: Decision): string {
  const {
    allowed,
    ruleId,
    limit,
    windowMillis,
    remaining,
    retryAfterMillis,
    resetMillis,
    waitMillis = 0,
  } = decision;
  const { index, term, position = null, timeMillis } = decision.decided;
  const { refusal = '', conflict, limits = null, rulesVersion, isBlocked = false, customer } = decision;
  const numbers = [limit, windowMillis, remaining, retryAfterMillis, resetMillis, waitMillis];
  return JSON.stringify([
    allowed,
    ruleId,
    numbers,
    [index, term, position, timeMillis],
    rulesVersion,
    [refusal, conflict?.field, conflict?.first],
    limits?.map(wordsOfStatus),
    [isBlocked, customer?.isDone, customer && wordsOfRecord(customer.record)],
  ]);
}
