/** The key that a user id in a path stands for. */
import { invalidInUser } from '../api/question.ts';
import { GLOBAL_KEY, userKey } from '../api/key-text.ts';
import { InvalidBodyError } from './json-body.ts';

/** As `user=ada`. @throws InvalidBodyError if it is no user id */
export function keyOfUser(userId: string): string {
  const invalid = invalidInUser({ userId });
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  // Every user id has a key.
  return userKey(userId) ?? GLOBAL_KEY;
}
