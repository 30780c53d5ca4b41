/** `ALLOW key [COST n] [RULE r] [AT timestampMillis] [ID requestId] [SETTLE [RESERVED requestId]]`: all that a request for a grant can say. */
import { invalidInUser, questionOf } from '../../api/question.ts';
import type { Call, Command } from '../command.ts';
import { type ErrorReply, failed, type Reply, SYNTAX_ERROR } from '../reply.ts';
import { writeAllow } from './answer-forms.ts';

export const ALLOW: Command = {
  name: 'ALLOW',
  isShed: true,
  arity: -2,
  flags: ['write', 'fast'],
  key: 1,
  summary:
    'Asks for a grant by a rule of the cluster; with SETTLE for what happened already, which is charged in any case. Returns allowed 0 or 1, limit, remaining, milliseconds until a retry can succeed, and until all is free',
  run: runAllow,
};

function runAllow(call: Call): Reply | undefined {
  const { args } = call;
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  let cost: number | undefined;
  let rule: string | undefined;
  let timestampMillis: number | undefined;
  let requestId: string | undefined;
  let settle: true | undefined;
  let reserved: string | undefined;
  for (let i = 2; i < args.count; i += 2) {
    const value = i + 1;
    if (args.is(i, 'SETTLE') && settle === undefined) {
      settle = true;
      i -= 1;
    } else if (value === args.count) return SYNTAX_ERROR;
    else if (args.is(i, 'COST') && cost === undefined) cost = args.integer(value);
    else if (args.is(i, 'AT') && timestampMillis === undefined) timestampMillis = args.integer(value);
    else if (args.is(i, 'RULE') && rule === undefined) {
      rule = args.text(value);
      if (rule === undefined) return notUtf8('rule');
    } else if (args.is(i, 'ID') && requestId === undefined) {
      requestId = args.text(value);
      if (requestId === undefined) return notUtf8('requestId');
    } else if (args.is(i, 'RESERVED') && reserved === undefined) {
      reserved = args.text(value);
      if (reserved === undefined) return notUtf8('reserved');
    } else return SYNTAX_ERROR;
  }
  const request = { userId, rule, cost, timestampMillis, requestId, settle, reserved };
  const invalid = invalidInUser(request);
  if (invalid !== undefined) return failed(invalid.message);
  call.ask(questionOf(request), writeAllow, cost ?? 1);
  return undefined;
}

export function notUtf8(field: string): ErrorReply {
  return failed(`${field} must be UTF-8, and some of its bytes are not`);
}
