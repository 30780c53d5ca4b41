/** Parses the body of a request for a grant, alone or as one of a batch. */
import { USER } from '../api/descriptors.ts';
import {
  invalidInQuestion,
  invalidInUser,
  NOBODY_NAMED,
  type Question,
  questionOf,
} from '../api/question.ts';
import type { Invalid } from '../api/answer.ts';
import { REQUEST_FIELDS, type RequestField } from '../api/request.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import type { HeaderUser } from './user-header.ts';

const DESCRIPTORS = 'descriptors';
const SETTLE = 'settle';
const FIELDS = [...REQUEST_FIELDS, DESCRIPTORS, SETTLE] as const;
type Claimed = { readonly [Name in RequestField]?: never } & {
  readonly [DESCRIPTORS]?: unknown;
  readonly [SETTLE]?: unknown;
};

/**
 * Parses the JSON body `{"userId": string, "descriptors": {name: text}, "timestampMillis"?: integer, "cost"?:
 * integer, "rule"?: string, "requestId"?: string, "settle"?: boolean}`. At least one of the first two must be there;
 * `userId` is short for the descriptor `user`. `null` counts as absent.
 *
 * @param headerUser the user that a header of the request names. Then the body need not name one, and must not name
 *   another.
 * @throws InvalidBodyError naming the field and its bound
 */
export function parseAllowBody(body: unknown, headerUser: HeaderUser | undefined): Question {
  const needs = headerUser === undefined ? 'at least userId or descriptors' : 'fields';
  // The types are only assumed here; every type and bound is checked below.
  const claimed = fieldsOf(body, FIELDS, needs) as Claimed;
  const { descriptors, timestampMillis, cost, rule, requestId, settle } = claimed;
  if (typeof (settle ?? false) !== 'boolean')
    throw new InvalidBodyError(SETTLE, 'settle must be true or false');
  const userId = claimed.userId ?? headerUser?.userId;
  const rest = {
    rule: rule ?? undefined,
    timestampMillis: timestampMillis ?? undefined,
    cost: cost ?? undefined,
    requestId: requestId ?? undefined,
    ...(settle === true && ({ settle: true } as const)),
  };
  const isDescribed = descriptors !== undefined && descriptors !== null;
  if (userId === undefined && !isDescribed) throw new InvalidBodyError('userId', NOBODY_NAMED);
  if (userId !== undefined) refuse(invalidInUser({ userId, ...rest }));
  const question = isDescribed
    ? { descriptors: named(descriptors, userId), ...rest }
    : questionOf({ userId: userId ?? '', ...rest });
  if (isDescribed) refuse(invalidInQuestion(question));
  if (headerUser !== undefined && userId !== headerUser.userId) {
    const { header, userId: known } = headerUser;
    throw new InvalidBodyError(
      'userId',
      `userId '${userId}' of the body and '${known}' of the header ${header} must be the same`,
    );
  }
  return question;
}

function refuse(invalid: Invalid | undefined): void {
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
}

function named(descriptors: unknown, userId: string | undefined): Map<string, string> {
  if (typeof descriptors !== 'object' || descriptors === null || Array.isArray(descriptors))
    throw new InvalidBodyError(DESCRIPTORS, 'descriptors must be an object of names and texts');
  const map = new Map<string, string>(Object.entries(descriptors));
  const user = map.get(USER);
  if (userId !== undefined && user !== undefined && user !== userId)
    throw new InvalidBodyError('userId', 'userId and the descriptor user must be the same');
  if (userId !== undefined) map.set(USER, userId);
  return map;
}
