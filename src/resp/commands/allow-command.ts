/** `ALLOW key [COST n] [RULE r] [AT timestampMillis] [ID requestId] [SETTLE]`: a request for a grant for a user. */
import { invalidInUser, questionOf, type UserQuestion } from '../../api/question.ts';
import type { Call, Command } from '../command.ts';
import { failed, type Reply } from '../reply.ts';
import { writeAllow } from './answer-forms.ts';
import { notUtf8, readGrantOptions } from './grant-options.ts';

/** The command `ALLOW`. */
export const ALLOW: Command = {
  name: 'ALLOW',
  isShed: true,
  arity: -2,
  flags: ['write', 'fast'],
  key: 1,
  summary:
    'Asks for a grant by a rule of the cluster; with SETTLE it reports usage after the fact, which is charged whatever the limits say. Returns allowed 0 or 1, limit, remaining, milliseconds until a retry can succeed, and until all is free',
  run: runAllow,
};

function runAllow(call: Call): Reply | undefined {
  const { args } = call;
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  const request: UserQuestion = { userId };
  const wrong = readGrantOptions(args, 2, true, request);
  if (wrong !== undefined) return wrong;
  const invalid = invalidInUser(request);
  if (invalid !== undefined) return failed(invalid.message);
  call.ask(questionOf(request), writeAllow, request.cost ?? 1);
  return undefined;
}
