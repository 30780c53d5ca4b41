/** Helpers for the tests of the checkers: builds described requests by hand and runs the checkers on them. */
import { checkJointAnswers } from './checkers/joint-answers.ts';
import { checkJointDenials } from './checkers/joint-denials.ts';
import { checkJointLimits } from './checkers/joint-limits.ts';
import { checkJointReceipts } from './checkers/joint-receipts.ts';
import type { Operation } from './history.ts';
import {
  type Ask,
  type JointEvent,
  jointHistory,
  type KeyAction,
  type KeyChange,
  type LimitAsked,
  type Refund,
  type RulesChange,
} from './joint-history.ts';
import type { NemesisBand } from './nemesis-log.ts';

const WINDOW_MILLIS = 1_000;
const DRIFT_PPM = 500;
const HORIZON_MILLIS = 15_000;

/** A key under a rule. */
export function under(rule: string, key: string): LimitAsked {
  return { rule, key, windowMillis: WINDOW_MILLIS };
}

export const ADA = under('user', 'user=ada');
export const EVE = under('user', 'user=eve');
export const NET = under('net', 'net=1');

/** An attempt from `at` to 5 ms later, in milliseconds. */
function ended(at: number): Pick<Ask, 'node' | 'invokeNanos' | 'completeNanos' | 'error'> {
  return { node: 1, invokeNanos: at * 1e6, completeNanos: (at + 5) * 1e6, error: null };
}

/** A grant of cost 1 under the initial limits, decided in partition 1. */
export function granted(at: number, limits: readonly LimitAsked[], more: Partial<Ask> = {}): Ask {
  return {
    op: 'ask',
    ...ended(at),
    status: 200,
    class: 'ok',
    listener: 'http',
    limits,
    cost: 1,
    settled: false,
    requestId: `r${at}`,
    allowed: true,
    blocked: false,
    reported: limits.map(({ rule }) => ({ rule, limit: 2, remaining: 0 })),
    receipt: { group: 1, index: at, position: 0, term: 1, timeMillis: at },
    ...more,
  };
}

export function denied(at: number, limits: readonly LimitAsked[], more: Partial<Ask> = {}): Ask {
  return { ...granted(at, limits, { status: 429, allowed: false, receipt: null }), ...more };
}

export function unanswered(at: number, limits: readonly LimitAsked[], more: Partial<Ask> = {}): Ask {
  const nothing = { status: 0, class: 'info', allowed: null, receipt: null, reported: [] } as const;
  return { ...granted(at, limits), ...nothing, ...more };
}

export function refund(at: number, of: Ask, more: Partial<Refund> = {}): Refund {
  return {
    op: 'refund',
    ...ended(at),
    status: 200,
    class: 'ok',
    listener: 'http',
    key: of.limits[0]?.key ?? '',
    requestId: of.requestId,
    refunded: true,
    rule: of.limits[0]?.rule ?? null,
    cost: of.cost,
    receipt: of.receipt,
    ...more,
  };
}

/** All limits are `limit` from here on. The version before the first change is 1. */
export function change(at: number, limit: number, more: Partial<RulesChange> = {}): RulesChange {
  const limits = { user: limit, net: limit };
  return {
    op: 'rules',
    ...ended(at),
    status: 200,
    class: 'ok',
    ifVersion: at,
    version: at + 1,
    limits,
    ...more,
  };
}

/** A change of ADA's key by an operator. */
export function keyChange(at: number, action: KeyAction, more: Partial<KeyChange> = {}): KeyChange {
  return { op: 'key', ...ended(at), status: 200, class: 'ok', key: ADA.key, action, ...more };
}

export interface Surroundings {
  readonly bands?: readonly NemesisBand[];
  readonly history?: readonly Operation[];
}

/** The findings of the checks of answers and of real time. The limits are 2 at the start. */
export function found(
  events: readonly JointEvent[],
  { bands = [], history = [] }: Surroundings = {},
): readonly string[] {
  const joint = jointHistory([change(0, 2), ...events]);
  return [
    checkJointLimits(joint, bands),
    checkJointAnswers(joint, {
      requestIdHorizonMillis: HORIZON_MILLIS,
      driftPpm: DRIFT_PPM,
      history,
      bands,
      settleMillis: 100,
    }),
    checkJointDenials(joint, { driftPpm: DRIFT_PPM, bands, settleMillis: 100, slackMillis: 0 }),
  ].flatMap(({ findings }) => findings);
}

/** The findings of the check of receipts. */
export function foundInLog(events: readonly JointEvent[]): readonly string[] {
  return checkJointReceipts(jointHistory([change(0, 2), ...events]), { driftPpm: DRIFT_PPM }).findings;
}
