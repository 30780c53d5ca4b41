/** The frame of answers to forwarded requests. */
import { UNAVAILABLE_REASONS } from '../api/refusals.ts';
import { CONFLICT_FIELDS, type Receipt } from '../api/answer.ts';
import { type Answer } from '../partition/answer.ts';
import { array, Fields, pack, unpack } from './fields.ts';

export interface ForwardedAnswer {
  /** As the request bore it. */
  readonly id: number;
  readonly answer: Answer;
}

const KINDS = [
  'decision',
  'invalid',
  'unavailable',
  'notLeader',
  'conflict',
] as const satisfies readonly Answer['kind'][];

/** None at all is a sign of life. */
export function encodeAnswers(answers: readonly ForwardedAnswer[]): Buffer {
  return pack(answers.map(({ id, answer }) => [id, ...encodeAnswer(answer)]));
}

/** @throws FrameError if it is malformed */
export function decodeAnswers(payload: Uint8Array): ForwardedAnswer[] {
  return array(unpack(payload), 'answers').map((row) => {
    const fields = new Fields(row);
    return { id: fields.integer('id'), answer: decodeAnswer(fields) };
  });
}

function encodeAnswer(answer: Answer): unknown[] {
  const kind = KINDS.indexOf(answer.kind);
  switch (answer.kind) {
    case 'decision': {
      const { allowed, ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis } =
        answer.decision;
      const { term, index, position = null, timeMillis } = answer.decision.decided;
      const waits = [limit, windowMillis, remaining, retryAfterMillis, resetMillis];
      return [kind, allowed, ruleId, ...waits, term, index, position, timeMillis];
    }
    case 'invalid':
      return [kind, answer.field, answer.message];
    case 'conflict':
      return [kind, CONFLICT_FIELDS.indexOf(answer.field), answer.message];
    case 'unavailable':
      return [kind, UNAVAILABLE_REASONS.indexOf(answer.reason), answer.proposed];
    case 'notLeader':
      return [kind, answer.leader, answer.term];
  }
}

function decodeAnswer(fields: Fields): Answer {
  const kind = fields.oneOf(KINDS, 'kind');
  switch (kind) {
    case 'decision':
      return {
        kind,
        decision: {
          allowed: fields.boolean('allowed'),
          ruleId: fields.string('ruleId'),
          limit: fields.integer('limit'),
          windowMillis: fields.integer('windowMillis'),
          remaining: fields.integer('remaining'),
          retryAfterMillis: fields.integer('retryAfterMillis'),
          resetMillis: fields.integer('resetMillis'),
          decided: decodeReceipt(fields),
        },
      };
    case 'invalid':
      return { kind, field: fields.string('field'), message: fields.string('message') };
    case 'conflict':
      return { kind, field: fields.oneOf(CONFLICT_FIELDS, 'field'), message: fields.string('message') };
    case 'unavailable':
      return {
        kind,
        reason: fields.oneOf(UNAVAILABLE_REASONS, 'reason'),
        proposed: fields.boolean('proposed'),
      };
    case 'notLeader':
      return { kind, leader: fields.integer('leader'), term: fields.integer('term') };
  }
}

function decodeReceipt(fields: Fields): Receipt {
  const term = fields.integer('term');
  const index = fields.integer('index');
  const position = fields.optionalInteger('position');
  const timeMillis = fields.integer('timeMillis');
  return position === undefined ? { term, index, timeMillis } : { term, index, position, timeMillis };
}
