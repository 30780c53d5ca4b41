/**
 * The frame with answers to forwarded requests, one after the other. A rule id is written out once and then
 * referred to by its number, as most answers of a frame come from one rule.
 */
import { UNAVAILABLE_REASONS } from '../api/refusals.ts';
import {
  CONFLICT_FIELDS,
  type Decision,
  type LimitStatus,
  type Receipt,
  type Unavailable,
} from '../api/answer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { KeyStatus } from '../api/peek.ts';
import type { Refund } from '../api/refund.ts';
import { CommandDecodeError } from '../limiter/log/command.ts';
import { decodeRecord, encodeRecord, readBlockOf, writeBlockOf } from '../limiter/record-form.ts';
import type { Answer } from '../api/user-request.ts';
import type { ByteReader } from '../bytes/byte-reader.ts';
import { ByteWriter } from '../bytes/byte-writer.ts';
import { payloadReader, takePayload } from './payload.ts';
import { FrameError } from './frame.ts';

/** One answer in a frame. */
export interface ForwardedAnswer {
  /** Correlation id of the request. */
  readonly id: number;
  readonly answer: Answer;
}

const KINDS = [
  'decision',
  'invalid',
  'unavailable',
  'notLeader',
  'conflict',
  'keyStatus',
  'refund',
  'customer',
] as const satisfies readonly Answer['kind'][];

/** Code of a denial because of a block; 0 is a denial by a limit, 1 a grant. */
const BLOCKED = 2;

const NOTHING = new Uint8Array(0);
const out = new ByteWriter();

/** Encodes answers. An empty list is the reply to a ping. */
export function encodeAnswers(answers: readonly ForwardedAnswer[]): Buffer {
  const ruleIds: string[] = [];
  out.clear();
  out.integer(answers.length);
  for (const { id, answer } of answers) {
    out.integer(id);
    out.integer(KINDS.indexOf(answer.kind));
    encodeAnswer(answer, ruleIds);
  }
  return takePayload(out);
}

/** Decodes answers. @throws FrameError if the frame is malformed */
export function decodeAnswers(payload: Uint8Array): ForwardedAnswer[] {
  const input = payloadReader(payload);
  const ruleIds: string[] = [];
  const answers: ForwardedAnswer[] = [];
  const count = input.count('answers');
  for (let i = 0; i < count; i += 1) {
    const id = input.integer('id');
    answers.push({ id, answer: decodeAnswer(input, ruleIds) });
  }
  if (!input.isAtEnd) throw new FrameError('bytes follow the answers');
  return answers;
}

function encodeAnswer(answer: Answer, ruleIds: string[]): void {
  switch (answer.kind) {
    case 'decision':
      out.flag(answer.isRepeat === true);
      encodeDecision(answer.decision, ruleIds);
      return;
    case 'invalid':
      out.text(answer.field);
      out.text(answer.message);
      return;
    case 'conflict':
      out.integer(CONFLICT_FIELDS.indexOf(answer.field));
      out.text(answer.message);
      return;
    case 'unavailable':
      out.integer(UNAVAILABLE_REASONS.indexOf(answer.reason));
      out.flag(answer.proposed);
      if (answer.reason === 'customer_changed')
        out.byteString(answer.record === undefined ? NOTHING : encodeRecord(answer.record));
      return;
    case 'notLeader':
      out.integer(answer.leader);
      out.integer(answer.term);
      return;
    case 'keyStatus':
      out.integer(answer.keyStatus.limits.length);
      for (const limit of answer.keyStatus.limits) encodeLimit(limit, ruleIds);
      encodeReceipt(answer.keyStatus.decided);
      writeBlockOf(out, answer.keyStatus);
      out.integer(answer.keyStatus.rulesVersion);
      return;
    case 'refund':
      encodeRefund(answer.refund, ruleIds);
      return;
    case 'customer':
      out.flag(answer.outcome.isDone);
      out.byteString(encodeRecord(answer.outcome.record));
      encodeReceipt(answer.outcome.decided);
  }
}

function encodeDecision(decision: Decision, ruleIds: string[]): void {
  out.integer(decision.isBlocked === true ? BLOCKED : Number(decision.allowed));
  encodeLimit(decision, ruleIds);
  out.integer(decision.waitMillis ?? 0);
  encodeReceipt(decision.decided);
  out.integer(decision.rulesVersion);
  const { limits = [] } = decision;
  out.integer(limits.length);
  for (const limit of limits) encodeLimit(limit, ruleIds);
}

function encodeRefund(refund: Refund, ruleIds: string[]): void {
  const { refunded, ruleId, cost, decided, rulesVersion, attempt = 0 } = refund;
  out.flag(refunded);
  encodeRuleId(ruleId, ruleIds);
  out.integer(cost);
  encodeReceipt(decided);
  out.integer(rulesVersion);
  out.integer(attempt);
}

function encodeRuleId(ruleId: string, ruleIds: string[]): void {
  const rule = ruleIds.indexOf(ruleId);
  out.integer(rule + 1);
  if (rule !== -1) return;
  ruleIds.push(ruleId);
  out.text(ruleId);
}

function encodeLimit(keyStatus: LimitStatus, ruleIds: string[]): void {
  encodeRuleId(keyStatus.ruleId, ruleIds);
  out.integer(keyStatus.limit);
  out.integer(keyStatus.windowMillis);
  out.integer(keyStatus.remaining);
  out.integer(keyStatus.retryAfterMillis);
  out.integer(keyStatus.resetMillis);
  out.integer(keyStatus.restoredMillis ?? 0);
}

function encodeReceipt({ term, index, position, timeMillis }: Receipt): void {
  out.integer(term);
  out.integer(index);
  out.integer(position === undefined ? 0 : position + 1);
  out.integer(timeMillis);
}

function decodeAnswer(input: ByteReader, ruleIds: string[]): Answer {
  const kind = input.oneOf(KINDS, 'kind');
  switch (kind) {
    case 'decision': {
      const isRepeat = input.flag('isRepeat');
      const decision = decodeDecision(input, ruleIds);
      return isRepeat ? { kind, decision, isRepeat } : { kind, decision };
    }
    case 'invalid':
      return { kind, field: input.text('field'), message: input.text('message') };
    case 'conflict':
      return { kind, field: input.oneOf(CONFLICT_FIELDS, 'field'), message: input.text('message') };
    case 'unavailable':
      return decodeUnavailable(input);
    case 'notLeader':
      return { kind, leader: input.integer('leader'), term: input.integer('term') };
    case 'keyStatus':
      return { kind, keyStatus: decodeStatus(input, ruleIds) };
    case 'refund':
      return { kind, refund: decodeRefund(input, ruleIds) };
    case 'customer': {
      const isDone = input.flag('isDone');
      const record = recordOf(input.byteView('record'));
      return { kind, outcome: { isDone, record, decided: decodeReceipt(input) } };
    }
  }
}

function decodeUnavailable(input: ByteReader): Unavailable {
  const reason = input.oneOf(UNAVAILABLE_REASONS, 'reason');
  const proposed = input.flag('proposed');
  if (reason !== 'customer_changed') return { kind: 'unavailable', reason, proposed };
  const bytes = input.byteView('record');
  if (bytes.length === 0) return { kind: 'unavailable', reason, proposed };
  return { kind: 'unavailable', reason, proposed, record: recordOf(bytes) };
}

function recordOf(bytes: Uint8Array): CustomerRecord {
  try {
    return decodeRecord(bytes);
  } catch (error) {
    if (error instanceof CommandDecodeError) throw new FrameError(error.message);
    throw error;
  }
}

const NO_LIMITS: readonly LimitStatus[] = [];

function decodeDecision(input: ByteReader, ruleIds: string[]): Decision {
  const outcome = input.integer('allowed');
  if (outcome > BLOCKED) throw new FrameError(`allowed is ${outcome}`);
  const allowed = outcome === 1;
  const ruleId = decodeRuleId(input, ruleIds);
  const limit = input.integer('limit');
  const windowMillis = input.integer('windowMillis');
  const remaining = input.integer('remaining');
  const retryAfterMillis = input.integer('retryAfterMillis');
  const resetMillis = input.integer('resetMillis');
  const restoredMillis = input.integer('restoredMillis');
  const waitMillis = input.integer('waitMillis');
  const decided = decodeReceipt(input);
  const rulesVersion = input.integer('rulesVersion');
  // Built as one object without spreading: every forwarded request gets one.
  const decision = {
    allowed,
    ruleId,
    limit,
    windowMillis,
    remaining,
    retryAfterMillis,
    resetMillis,
    decided,
    rulesVersion,
  };
  const limits = decodeLimits(input, ruleIds);
  if (outcome === BLOCKED) return { ...decision, isBlocked: true };
  if (waitMillis === 0 && limits.length === 0 && restoredMillis === 0) return decision;
  return {
    ...decision,
    ...(waitMillis > 0 && { waitMillis }),
    ...(restoredMillis > 0 && { restoredMillis }),
    ...(limits.length > 0 && { limits }),
  };
}

function decodeStatus(input: ByteReader, ruleIds: string[]): KeyStatus {
  const limits = decodeLimits(input, ruleIds);
  const decided = decodeReceipt(input);
  const { isBlocked, ...end } = readBlockOf(input);
  const keyStatus = { limits, decided, rulesVersion: input.integer('rulesVersion') };
  return isBlocked ? { ...keyStatus, isBlocked, ...end } : keyStatus;
}

function decodeLimits(input: ByteReader, ruleIds: string[]): readonly LimitStatus[] {
  const length = input.count('limits');
  // Most decisions have a single limit, which is not listed.
  return length === 0 ? NO_LIMITS : Array.from({ length }, () => decodeLimit(input, ruleIds));
}

function decodeLimit(input: ByteReader, ruleIds: string[]): LimitStatus {
  const keyStatus = {
    ruleId: decodeRuleId(input, ruleIds),
    limit: input.integer('limit'),
    windowMillis: input.integer('windowMillis'),
    remaining: input.integer('remaining'),
    retryAfterMillis: input.integer('retryAfterMillis'),
    resetMillis: input.integer('resetMillis'),
  };
  const restoredMillis = input.integer('restoredMillis');
  return restoredMillis === 0 ? keyStatus : { ...keyStatus, restoredMillis };
}

function decodeRefund(input: ByteReader, ruleIds: string[]): Refund {
  const refund = {
    refunded: input.flag('refunded'),
    ruleId: decodeRuleId(input, ruleIds),
    cost: input.integer('cost'),
    decided: decodeReceipt(input),
    rulesVersion: input.integer('rulesVersion'),
  };
  const attempt = input.integer('attempt');
  return attempt === 0 ? refund : { ...refund, attempt };
}

function decodeRuleId(input: ByteReader, ruleIds: string[]): string {
  const rule = input.integer('rule');
  if (rule === 0) ruleIds.push(input.text('ruleId'));
  const ruleId = ruleIds.at(rule === 0 ? -1 : rule - 1);
  if (ruleId === undefined) throw new FrameError(`rule number ${rule} is unknown`);
  return ruleId;
}

function decodeReceipt(input: ByteReader): Receipt {
  const term = input.integer('term');
  const index = input.integer('index');
  const position = input.integer('position') - 1;
  const timeMillis = input.integer('timeMillis');
  return position === -1 ? { term, index, timeMillis } : { term, index, position, timeMillis };
}
