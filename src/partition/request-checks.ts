/** What can be said of a request without asking any rule: that it can never be decided as it is. */
import { type AllowRequest, checkRequest, InvalidRequestError } from '../limiter/request.ts';
import { type Answer, invalid } from './answer.ts';

/** Why the request is out of bounds, whatever the rules are. */
export function checkedRequest(request: AllowRequest): Answer | undefined {
  try {
    checkRequest(request);
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    return invalid(error.field, error.message);
  }
}
