/**
 * A question to the cluster: may this request go on? It describes the request by descriptors, and the rules in force
 * find the limits that apply. Either all of these limits grant it, or none is charged. Plain data, and the check of
 * the question.
 */
import type { AllowAnswer, Invalid, LimitStatus } from './answer.ts';
import { isBoundedText } from './bounded.ts';
import { type Descriptors, USER, UserDescriptor } from './descriptors.ts';
import { type AllowRequest, invalidIn, RULE_ID_BYTES_MAX, USER_ID_BYTES_MAX } from './request.ts';

/** The most descriptors of one request. */
export const DESCRIPTORS_MAX = 16;
/** The longest name of a descriptor in UTF-8 bytes. */
export const DESCRIPTOR_NAME_BYTES_MAX = 64;
/** The longest value of a descriptor in UTF-8 bytes. A key holds a long value in a shortened form (see `keyText`). */
export const DESCRIPTOR_VALUE_BYTES_MAX = 4_096;

/** A question, with the descriptors of the request. */
export interface Question extends Pick<AllowRequest, 'cost' | 'timestampMillis' | 'requestId' | 'settle'> {
  /** 1 to `DESCRIPTORS_MAX`. */
  readonly descriptors: Descriptors;
  /**
   * Decide by this rule alone, 1 to `RULE_ID_BYTES_MAX` bytes: the id of a rule that is `named`, or of a stated rule
   * such as `100/60000ms` or `30/60000ms+15`, which counts by `user`. Absent: all rules that match.
   */
  readonly rule?: string | undefined;
}

/** The answer to a `Question`. */
export type AskAnswer = Answered & {
  /**
   * Shadow rules that would have denied the request. Set only if the request was allowed, and only for rules that
   * answered in time.
   */
  readonly wouldDeny?: readonly WouldDeny[];
};

/** A shadow rule that would have denied the request (see `LimitStatus`). */
export interface WouldDeny extends Pick<LimitStatus, 'ruleId' | 'limit' | 'retryAfterMillis'> {
  readonly key: string;
}

type Answered =
  | (AllowAnswer & {
      /** With a decision: the key that the binding rule counted, such as `user=ada`. Absent if it is not known. */
      readonly key?: string;
    })
  /** No rule of this version limits the request. Nothing was counted. */
  | { readonly kind: 'unlimited'; readonly rulesVersion: number }
  /**
   * No rule of this version matches the request, and the rule document denies such requests. Nothing was counted, and
   * no wait helps.
   */
  | { readonly kind: 'unmatched'; readonly rulesVersion: number }
  | DegradedAnswer;

/** No partition could decide, so the asked node answered by the fail modes of the rules. There is no receipt. */
export interface DegradedAnswer {
  readonly kind: 'degraded';
  readonly allowed: boolean;
  /** The rules of the document that could not be decided: at least one, each once. */
  readonly ruleIds: readonly string[];
  /** The version of the rules that the request was matched with. */
  readonly rulesVersion: number;
  /** 0 if allowed. Otherwise milliseconds until this node would allow it, if it still cannot be decided then. */
  readonly retryAfterMillis: number;
}

/** Called once. `partition` is that of the key of the binding limit. */
export type AskDone = (answer: AskAnswer, partition: number) => void;

/** A question about a user, with the names that callers use. */
export interface UserQuestion extends Pick<
  Question,
  'rule' | 'cost' | 'timestampMillis' | 'requestId' | 'settle'
> {
  /** 1 to `USER_ID_BYTES_MAX` bytes. */
  readonly userId: string;
}

/** The question whose only descriptor is `user`, with the value `userId`. */
export function questionOf({
  userId,
  rule,
  cost,
  timestampMillis,
  requestId,
  settle,
}: UserQuestion): Question {
  // Most requests come here, so this builds no map and copies no other object.
  return { descriptors: new UserDescriptor(userId), rule, cost, timestampMillis, requestId, settle };
}

/** The message for a request that has neither. */
export const NOBODY_NAMED = 'a request needs userId or descriptors, and this one has neither';

/**
 * Checks a question about a user: the first field that has a wrong type or is out of its bounds. Undefined if it
 * is well-formed.
 */
export function invalidInUser(question: UserQuestion): Invalid | undefined {
  if (!isBoundedText(question.userId, USER_ID_BYTES_MAX))
    return wrong('userId', `userId must be text of 1 to ${USER_ID_BYTES_MAX} bytes`);
  return invalidInRest(question);
}

/** Checks a question: the first field that is out of its bounds. Undefined if it is well-formed. */
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
