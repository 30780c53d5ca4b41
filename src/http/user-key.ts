/** The key for a user id in a path. */
import { invalidInUser } from '../api/question.ts';
import { GLOBAL_KEY, userKey } from '../api/key-text.ts';
import { InvalidBodyError } from './json-body.ts';

/** The key of a user, such as `user=ada`. @throws InvalidBodyError if it is not a valid user id */
export function keyOfUser(userId: string): string {
  const invalid = invalidInUser({ userId });
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  // Every valid user id has a key, so the fallback is never used.
  return userKey(userId) ?? GLOBAL_KEY;
}
