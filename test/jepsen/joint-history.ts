/**
 * Events of clients besides single requests for one user under one rule: described requests (rules find their limits)
 * over any API, refunds, and rule changes. Defines their form as JSON lines, where `op` names the kind. Judges nothing.
 */
import { type Attempt, HistoryError } from './history.ts';
import { encodeEnding, type Ending, endingIn, Line } from './history-line.ts';

/** The API of the request: HTTP alone, in a batch, or the Redis protocol. */
export type Listener = 'http' | 'batch' | 'redis';

/**
 * The `decided` field of an answer. The Redis protocol has none, and a denial that was read from the state has no
 * position.
 */
export interface Receipt {
  readonly group: number;
  readonly index: number;
  readonly position: number | null;
  readonly term: number;
  readonly timeMillis: number;
}

/**
 * The limit that a request counts at: one key under one window of one rule. The window is the stated one, not widened.
 */
export interface LimitAsked {
  readonly rule: string;
  readonly key: string;
  readonly windowMillis: number;
}

/** One limit as an answer reports it. */
export interface LimitReported {
  readonly rule: string;
  readonly limit: number;
  readonly remaining: number;
}

/** One attempt at a request under one or several limits. The client knows which, and a grant counts at each of them. */
export interface Ask extends Ending {
  readonly op: 'ask';
  readonly listener: Listener;
  /** A refund is requested by the key of the first limit. */
  readonly limits: readonly LimitAsked[];
  readonly cost: number;
  /** The cost is settled after the fact: it is charged even if the limits have less left. */
  readonly settled: boolean;
  /** An id is never used for a second request. */
  readonly requestId: string;
  /** Null without a decision. */
  readonly allowed: boolean | null;
  /** Denied because an operator blocked one of its keys. */
  readonly blocked: boolean;
  readonly reported: readonly LimitReported[];
  readonly receipt: Receipt | null;
}

export interface Refund extends Ending {
  readonly op: 'refund';
  readonly listener: Listener;
  readonly key: string;
  readonly requestId: string;
  /** The grant under the id no longer counts. Null: no answer says so. */
  readonly refunded: boolean | null;
  /** The rule and cost of the grant, from the answer. Null without it. */
  readonly rule: string | null;
  readonly cost: number | null;
  readonly receipt: Receipt | null;
}

/**
 * An attempt to replace all rules, if the version in force is `ifVersion`. 200: the new rules are in force everywhere;
 * 202: not everywhere yet.
 */
export interface RulesChange extends Ending {
  readonly op: 'rules';
  readonly ifVersion: number;
  /** The version from the answer. */
  readonly version: number | null;
  /** By rule. Rules that are missing here have no limit that changes, and no request uses them. */
  readonly limits: Readonly<Record<string, number>>;
}

export const KEY_ACTIONS = ['block', 'unblock', 'reset'] as const;
export type KeyAction = (typeof KEY_ACTIONS)[number];

/** An operator's change of one key. */
export interface KeyChange extends Ending {
  readonly op: 'key';
  readonly key: string;
  readonly action: KeyAction;
}

export type JointEvent = Ask | Refund | RulesChange | KeyChange;

export interface JointHistory {
  readonly asks: readonly Ask[];
  readonly refunds: readonly Refund[];
  readonly changes: readonly RulesChange[];
  readonly keyChanges: readonly KeyChange[];
}

export const NOTHING_JOINT: JointHistory = { asks: [], refunds: [], changes: [], keyChanges: [] };

export function jointHistory(events: readonly JointEvent[]): JointHistory {
  return {
    asks: events.filter((event) => event.op === 'ask'),
    refunds: events.filter((event) => event.op === 'refund'),
    changes: events.filter((event) => event.op === 'rules'),
    keyChanges: events.filter((event) => event.op === 'key'),
  };
}

/**
 * All events as attempts for the checks of availability; a refund or an operator's change counts as an attempt that
 * grants nothing. Requests that were undecided while the rules were changing are left out: the node that matches a
 * request and the partition that decides it may not agree on the rules before the deadline. Rule changes are left out
 * as well: they may wait for seconds.
 */
export function attemptsOf({ asks, refunds, changes, keyChanges }: JointHistory): Attempt[] {
  const isChanging = ({ invokeNanos, completeNanos }: Ask): boolean =>
    changes.some((change) => change.invokeNanos <= completeNanos && change.completeNanos >= invokeNanos);
  return [
    ...asks
      .filter((ask) => ask.class === 'ok' || !isChanging(ask))
      .map((ask) => ({ ...ask, user: ask.limits.map(({ key }) => key).join(' ') })),
    ...refunds.map((refund) => ({ ...refund, user: `a refund of ${refund.key}`, allowed: null })),
    ...keyChanges.map((change) => ({ ...change, user: `${change.action} ${change.key}`, allowed: null })),
  ];
}

export function encodeJoint(event: JointEvent): string {
  const ending = { op: event.op, ...encodeEnding(event) };
  switch (event.op) {
    case 'ask': {
      const { listener, cost, settled, requestId, allowed, blocked, reported, receipt } = event;
      const limits = event.limits.map(({ rule, key, windowMillis }) => ({
        rule,
        key,
        window_ms: windowMillis,
      }));
      const answer = { allowed, blocked, reported, receipt: encodeReceipt(receipt) };
      return JSON.stringify({ ...ending, listener, limits, cost, settled, request_id: requestId, ...answer });
    }
    case 'refund': {
      const { listener, key, requestId, refunded, rule, cost, receipt } = event;
      const answer = { refunded, rule, cost, receipt: encodeReceipt(receipt) };
      return JSON.stringify({ ...ending, listener, key, request_id: requestId, ...answer });
    }
    case 'rules': {
      const { ifVersion, version, limits } = event;
      return JSON.stringify({ ...ending, if_version: ifVersion, version, limits });
    }
    case 'key': {
      const { key, action } = event;
      return JSON.stringify({ ...ending, key, action });
    }
  }
}

function encodeReceipt(receipt: Receipt | null): unknown {
  if (receipt === null) return null;
  const { group, index, position, term, timeMillis } = receipt;
  return { group, index, position, term, time_ms: timeMillis };
}

function receiptIn(field: Line): Receipt | null {
  const line = field.lineOrNull('receipt');
  if (line === null) return null;
  return {
    group: line.number('group'),
    index: line.number('index'),
    position: line.numberOrNull('position'),
    term: line.number('term'),
    timeMillis: line.number('time_ms'),
  };
}

const LISTENERS: readonly Listener[] = ['http', 'batch', 'redis'];

/** @param value a parsed line with an `op`. @throws HistoryError naming line and field */
export function decodeJoint(value: unknown, lineNumber: number): JointEvent {
  const line = new Line(value, lineNumber);
  const ending = endingIn(line);
  const op = line.oneOf('op', ['ask', 'refund', 'rules', 'key']);
  switch (op) {
    case 'ask':
      return askOf(line, ending, lineNumber);
    case 'refund':
      return {
        op,
        ...ending,
        listener: line.oneOf('listener', LISTENERS),
        key: line.text('key'),
        requestId: line.text('request_id'),
        refunded: line.flagOrNull('refunded'),
        rule: line.textOrNull('rule'),
        cost: line.numberOrNull('cost'),
        receipt: receiptIn(line),
      };
    case 'rules': {
      const versions = { ifVersion: line.number('if_version'), version: line.numberOrNull('version') };
      return { op, ...ending, ...versions, limits: line.numbers('limits') };
    }
    case 'key':
      return { op, ...ending, key: line.text('key'), action: line.oneOf('action', KEY_ACTIONS) };
  }
}

function askOf(line: Line, ending: Ending, lineNumber: number): Ask {
  const limits = line.lines('limits').map((limit) => ({
    rule: limit.text('rule'),
    key: limit.text('key'),
    windowMillis: limit.number('window_ms'),
  }));
  const allowed = line.flagOrNull('allowed');
  if (limits.length === 0) throw new HistoryError(`line ${lineNumber}: limits must be one or more`);
  if (ending.class === 'ok' && allowed === null)
    throw new HistoryError(`line ${lineNumber}: an answered request needs allowed`);
  return {
    op: 'ask',
    ...ending,
    listener: line.oneOf('listener', LISTENERS),
    limits,
    cost: line.number('cost'),
    settled: line.flagOrNull('settled') ?? false,
    requestId: line.text('request_id'),
    allowed,
    blocked: line.flagOrNull('blocked') ?? false,
    reported: line.lines('reported').map((reported) => ({
      rule: reported.text('rule'),
      limit: reported.number('limit'),
      remaining: reported.number('remaining'),
    })),
    receipt: receiptIn(line),
  };
}
