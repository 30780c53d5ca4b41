/** `PEEK` and `REFUND`: the status of a user, and the refund of a grant. */
import { invalidInUser, questionOf } from '../../api/question.ts';
import { GLOBAL_KEY, userKey } from '../../api/key-text.ts';
import type { Call, Command } from '../command.ts';
import { failed, type Reply, SYNTAX_ERROR, notUtf8 } from '../reply.ts';
import { refundReply, statusReply } from './answer-forms.ts';

/** The most bytes of one row of `PEEK`: a rule id of 128 bytes, five numbers, and the framing. */
const ROW_BYTES_MAX = 256;

/** `PEEK key [RULE r]`: a peek at the status of a user. */
const PEEK: Command = {
  name: 'PEEK',
  isShed: true,
  arity: -2,
  flags: ['readonly', 'fast'],
  key: 1,
  summary:
    'Reads the status of a user under every rule or one, and counts nothing. Returns for each its id, limit, remaining, milliseconds until one more would be granted, until the whole limit is free, and of the window',
  run: runPeek,
};

/** `REFUND key ID requestId [RULE r]`. */
const REFUND: Command = {
  name: 'REFUND',
  isShed: true,
  arity: -4,
  flags: ['write', 'fast'],
  key: 1,
  summary:
    'Takes back the grant under a request id, once. Returns refunded 0 or 1, the rule and the cost of the grant',
  run: runRefund,
};

/** `PEEK` and `REFUND`. */
export const USER_COMMANDS: readonly Command[] = [PEEK, REFUND];

function runPeek(call: Call): Reply | undefined {
  const { args } = call;
  const isOfOneRule = args.count === 4 && args.is(2, 'RULE');
  if (args.count > 2 && !isOfOneRule) return SYNTAX_ERROR;
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  const rule = isOfOneRule ? args.text(3) : undefined;
  if (isOfOneRule && rule === undefined) return notUtf8('rule');
  const invalid = invalidInUser({ userId, rule });
  if (invalid !== undefined) return failed(invalid.message);
  const { node } = call.listener;
  const rows = isOfOneRule ? 1 : (node.rules()?.rules.length ?? 1);
  const reply = call.answerLater(rows * ROW_BYTES_MAX);
  node.peek({ key: userKey(userId) ?? GLOBAL_KEY, rule }, (answer) => reply(statusReply(answer)));
  return undefined;
}

function runRefund(call: Call): Reply | undefined {
  const { args } = call;
  const hasRule = args.count === 6 && args.is(4, 'RULE');
  if (!args.is(2, 'ID') || (args.count > 4 && !hasRule)) return SYNTAX_ERROR;
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  const requestId = args.text(3);
  if (requestId === undefined) return notUtf8('requestId');
  const rule = hasRule ? args.text(5) : undefined;
  if (hasRule && rule === undefined) return notUtf8('rule');
  const invalid = invalidInUser({ userId, requestId, rule });
  if (invalid !== undefined) return failed(invalid.message);
  const reply = call.answerLater(0);
  call.listener.node.refund({ ...questionOf({ userId, rule }), requestId }, (answer) =>
    reply(refundReply(answer)),
  );
  return undefined;
}
