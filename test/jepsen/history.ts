/**
 * What clients asked and saw: single requests for one user under one rule, one operation per HTTP attempt, and their
 * form as JSON lines. Classifies attempts; judges nothing.
 */

/**
 * - `ok`: a decision was received (200, 429)
 * - `fail`: certainly nothing was proposed: the server says so, or no byte of the request was sent
 * - `info`: anything else; it may take effect at any time after its invocation, or never
 */
export type OperationClass = 'ok' | 'fail' | 'info';

export interface Operation {
  /** Operations of one process never overlap. A process whose operation ended as `info` is not used again. */
  readonly process: number;
  readonly user: string;
  readonly rule: string;
  /** The node that was asked; 0: unknown. */
  readonly node: number;
  /** On the one monotonic clock of the machine that recorded the history. */
  readonly invokeNanos: number;
  /** When the client had its answer or gave up. Null: it was still waiting when the recording ended. */
  readonly completeNanos: number | null;
  /** The limit and window of the rule, as the client knows them. The window is the stated one, not widened. */
  readonly limit: number;
  readonly windowMillis: number;
  readonly cost: number;
  /** The caller's own timestamp. Null: judged in group time. */
  readonly timestampMillis: number | null;
  /** Null without a decision. */
  readonly allowed: boolean | null;
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  readonly requestId: string | null;
  /**
   * The receipt (`decided`): partition, log index, position in the entry, term, and the time used. Null without one.
   */
  readonly group: number | null;
  readonly index: number | null;
  /** Also null for a decision that was read from the state after the entry, and in histories that do not record it. */
  readonly position: number | null;
  readonly term: number | null;
  readonly timeMillis: number | null;
  readonly remaining: number | null;
  readonly class: OperationClass;
  /** Why there was no decision: a reason of the server, or the code of a broken connection. */
  readonly error: string | null;
}

/** What all attempts have in common: when and at which node they were made, and how they ended. */
export type Attempt = Pick<
  Operation,
  'user' | 'node' | 'invokeNanos' | 'completeNanos' | 'class' | 'allowed' | 'status' | 'error'
>;

/** A line of a history cannot be parsed. */
export class HistoryError extends Error {
  override readonly name = 'HistoryError';
  readonly code = 'history';
}

/** The request of an attempt. */
export type Question = Pick<
  Operation,
  | 'process'
  | 'user'
  | 'rule'
  | 'node'
  | 'invokeNanos'
  | 'limit'
  | 'windowMillis'
  | 'cost'
  | 'timestampMillis'
  | 'requestId'
>;

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'answer'; readonly status: number; readonly body: unknown }
  /** No answer. `sent` false: there was no connection, so no byte of the request left. */
  | { readonly kind: 'broken'; readonly code: string; readonly sent: boolean };

const NO_DECISION = {
  allowed: null,
  group: null,
  index: null,
  position: null,
  term: null,
  timeMillis: null,
  remaining: null,
} as const;

/**
 * The operation of one attempt.
 *
 * @example writer.append(operationOf(question, nowNanos(), { kind: 'answer', status: 200, body }));
 */
export function operationOf(question: Question, completeNanos: number | null, outcome: Outcome): Operation {
  const asked = { ...question, completeNanos };
  if (outcome.kind === 'broken') {
    const { code, sent } = outcome;
    return { ...asked, ...NO_DECISION, status: 0, class: sent ? 'info' : 'fail', error: code };
  }
  const { status } = outcome;
  const body = fieldsOf(outcome.body);
  if (status === 200 || status === 429) {
    const decided = fieldsOf(body['decided']);
    return {
      ...asked,
      allowed: status === 200,
      status,
      group: numberOrNull(decided['partition']),
      index: numberOrNull(decided['index']),
      position: numberOrNull(decided['position']),
      term: numberOrNull(decided['term']),
      timeMillis: numberOrNull(decided['timeMillis']),
      remaining: numberOrNull(body['remaining']),
      class: 'ok',
      error: null,
    };
  }
  const isRefused = status === 400 || status === 413 || status === 415 || status === 422;
  const isUnproposed = status === 503 && body['proposed'] === false;
  const reason = typeof body['reason'] === 'string' ? body['reason'] : `status ${status}`;
  return {
    ...asked,
    ...NO_DECISION,
    status,
    class: isRefused || isUnproposed ? 'fail' : 'info',
    error: reason,
  };
}

export function encodeOperation(op: Operation): string {
  return JSON.stringify({
    process: op.process,
    user: op.user,
    rule: op.rule,
    node: op.node,
    invoke_ns: op.invokeNanos,
    complete_ns: op.completeNanos,
    limit: op.limit,
    window_ms: op.windowMillis,
    cost: op.cost,
    ts_ms: op.timestampMillis,
    allowed: op.allowed,
    status: op.status,
    request_id: op.requestId,
    group: op.group,
    index: op.index,
    position: op.position,
    term: op.term,
    time_ms: op.timeMillis,
    remaining: op.remaining,
    class: op.class,
    error: op.error,
  });
}

/** @throws HistoryError */
export function decodeOperation(value: unknown, lineNumber: number): Operation {
  const fields = fieldsOf(value);
  const number = (name: string, absent?: number): number => {
    const field = fields[name] ?? absent;
    if (typeof field === 'number' && Number.isFinite(field)) return field;
    throw new HistoryError(`line ${lineNumber}: ${name} must be a number, but is ${JSON.stringify(field)}`);
  };
  const nullable = (name: string): number | null =>
    fields[name] === undefined ? null : numberOrNull(fields[name]);
  const { user, allowed, class: stated } = fields;
  if (typeof user !== 'string') throw new HistoryError(`line ${lineNumber}: user must be text`);
  const status = number('status', 0);
  const decided = status === 200 || status === 429 ? 'ok' : 'info';
  const operationClass = stated === 'ok' || stated === 'fail' || stated === 'info' ? stated : decided;
  if (operationClass === 'ok' && (typeof allowed !== 'boolean' || nullable('complete_ns') === null)) {
    throw new HistoryError(`line ${lineNumber}: an answered operation needs allowed and complete_ns`);
  }
  return {
    process: number('process', 0),
    user,
    rule: textOrNull(fields['rule']) ?? 'default',
    node: number('node', 0),
    invokeNanos: number('invoke_ns'),
    completeNanos: nullable('complete_ns'),
    limit: number('limit'),
    windowMillis: number('window_ms'),
    cost: number('cost', 1),
    timestampMillis: nullable('ts_ms'),
    allowed: typeof allowed === 'boolean' ? allowed : null,
    status,
    requestId: textOrNull(fields['request_id']),
    group: nullable('group'),
    index: nullable('index'),
    position: nullable('position'),
    term: nullable('term'),
    timeMillis: nullable('time_ms'),
    remaining: nullable('remaining'),
    class: operationClass,
    error: textOrNull(fields['error']),
  };
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
