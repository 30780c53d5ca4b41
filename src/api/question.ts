/**
 * A question to the cluster, by every door: may this request go on? It says what the request is, by descriptors; the rules in
 * force find the limits that it is under. All of them grant it, or none is charged. Plain data, and the check of what is asked.
 */
import type { AllowAnswer, Invalid, LimitStanding } from './answer.ts';
import { isBoundedText } from './bounded.ts';
import { type Descriptors, USER, UserDescriptor } from './descriptors.ts';
import { type AllowRequest, invalidIn, RULE_ID_BYTES_MAX, USER_ID_BYTES_MAX } from './request.ts';

/** The most descriptors of one request. */
export const DESCRIPTORS_MAX = 16;
/** The longest name, in UTF-8 bytes. */
export const DESCRIPTOR_NAME_BYTES_MAX = 64;
/** The longest value, in UTF-8 bytes. In a key a long one is shortened: see `keyText`. */
export const DESCRIPTOR_VALUE_BYTES_MAX = 4_096;

export interface Question extends Pick<AllowRequest, 'cost' | 'timestampMillis' | 'requestId' | 'settle'> {
  /** 1 to `DESCRIPTORS_MAX`. */
  readonly descriptors: Descriptors;
  /**
   * To be decided by this rule alone, 1 to `RULE_ID_BYTES_MAX` bytes: the id of one that is `named`, or one that the request states
   * itself, such as `100/60000ms` or `30/60000ms+15`, which counts by `user`. Absent: by all rules that match.
   */
  readonly rule?: string | undefined;
}

export type AskAnswer = Answered & {
  /** Rules in shadow that would have denied the request. Only a request that is let through has them, and only those that answered in time. */
  readonly wouldDeny?: readonly WouldDeny[];
};

/** What a rule in shadow would have denied. See `LimitStanding`. */
export interface WouldDeny extends Pick<LimitStanding, 'ruleId' | 'limit' | 'retryAfterMillis'> {
  readonly key: string;
}

type Answered =
  | (AllowAnswer & {
      /** With a decision: the key that the binding rule counts, such as `user=ada`. Absent where it is not known. */
      readonly key?: string;
    })
  /** No rule of this version limits it. Nothing was counted. */
  | { readonly kind: 'unlimited'; readonly rulesVersion: number }
  /** No rule of this version is for it, and the document denies such requests. Nothing was counted, and no wait helps. */
  | { readonly kind: 'unmatched'; readonly rulesVersion: number }
  | DegradedAnswer;

/** Nobody could decide, and the fail modes of the rules did, at the node that was asked. There is no receipt of it. */
export interface DegradedAnswer {
  readonly kind: 'degraded';
  readonly allowed: boolean;
  /** The rules of the document that nobody could decide, at least one, each once. */
  readonly ruleIds: readonly string[];
  /** The version of the rules that found these. */
  readonly rulesVersion: number;
  /** 0 if it is allowed; else until this node would let it through, if nobody can decide by then either. */
  readonly retryAfterMillis: number;
}

/** Told once. `partition` is that of the key that binds. */
export type AskDone = (answer: AskAnswer, partition: number) => void;

/** What a caller says of a user, by the names that callers know. */
export interface UserQuestion extends Pick<
  Question,
  'rule' | 'cost' | 'timestampMillis' | 'requestId' | 'settle'
> {
  /** 1 to `USER_ID_BYTES_MAX` bytes. */
  readonly userId: string;
}

/** `userId` is the descriptor `user`, and nothing else. */
export function questionOf({
  userId,
  rule,
  cost,
  timestampMillis,
  requestId,
  settle,
}: UserQuestion): Question {
  // Most requests come here: no map, and no copy of what is left.
  return { descriptors: new UserDescriptor(userId), rule, cost, timestampMillis, requestId, settle };
}

/** The first field that is out of its bounds, whatever type it has; undefined if the question is well-formed. */
export function invalidInUser(question: UserQuestion): Invalid | undefined {
  if (!isBoundedText(question.userId, USER_ID_BYTES_MAX))
    return wrong('userId', `userId must be text of 1 to ${USER_ID_BYTES_MAX} bytes`);
  return invalidInRest(question);
}

/** The first thing that is out of its bounds; undefined if the question is well-formed. */
export function invalidInQuestion(question: Question): Invalid | undefined {
  const { descriptors } = question;
  if (descriptors.size === 0 || descriptors.size > DESCRIPTORS_MAX)
    return wrong('descriptors', `descriptors must be 1 to ${DESCRIPTORS_MAX}`);
  for (const [name, value] of descriptors) {
    if (!isBoundedText(name, DESCRIPTOR_NAME_BYTES_MAX))
      return wrong(
        'descriptors',
        `the name of a descriptor must be text of 1 to ${DESCRIPTOR_NAME_BYTES_MAX} bytes`,
      );
    if (value !== '' && !isBoundedText(value, DESCRIPTOR_VALUE_BYTES_MAX))
      return wrong(`descriptors.${name}`, `${name} must be text of 0 to ${DESCRIPTOR_VALUE_BYTES_MAX} bytes`);
  }
  return invalidInRest(question);
}

function invalidInRest({
  rule,
  cost,
  timestampMillis,
  requestId,
}: Omit<Question, 'descriptors'>): Invalid | undefined {
  if (rule !== undefined && !isBoundedText(rule, RULE_ID_BYTES_MAX))
    return wrong('rule', `rule must be text of 1 to ${RULE_ID_BYTES_MAX} bytes`);
  return invalidIn({ userId: USER, cost, timestampMillis, requestId });
}

function wrong(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
