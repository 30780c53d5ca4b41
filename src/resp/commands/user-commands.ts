/** `LOOK` and `REFUND`: what else may be asked about a user than a grant, with the fields that HTTP has for it. */
import { invalidIn } from '../../api/request.ts';
import type { Call, Command } from '../command.ts';
import { failed, type Reply, SYNTAX_ERROR } from '../reply.ts';
import { notUtf8 } from './allow-command.ts';
import { refundReply, standingReply } from './answer-forms.ts';

/** Of an answer to `LOOK`: a rule id of 128 bytes, five numbers, and what is around them. */
const ROW_BYTES_MAX = 256;

/** `LOOK key [RULE r]`. */
const LOOK: Command = {
  name: 'LOOK',
  isShed: true,
  arity: -2,
  flags: ['readonly', 'fast'],
  key: 1,
  summary:
    'Tells how a user stands under every rule or one, and counts nothing. Returns for each its id, limit, remaining, milliseconds until one more would be granted, until all is free, and of the window',
  run: runLook,
};

/** `REFUND key ID requestId`. */
const REFUND: Command = {
  name: 'REFUND',
  isShed: true,
  arity: 4,
  flags: ['write', 'fast'],
  key: 1,
  summary:
    'Takes back what was granted under a request id, once. Returns refunded 0 or 1, the rule and the cost of the grant',
  run: runRefund,
};

export const USER_COMMANDS: readonly Command[] = [LOOK, REFUND];

function runLook(call: Call): Reply | undefined {
  const { args } = call;
  const isOfOneRule = args.count === 4 && args.is(2, 'RULE');
  if (args.count > 2 && !isOfOneRule) return SYNTAX_ERROR;
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  const ruleId = isOfOneRule ? args.text(3) : undefined;
  if (isOfOneRule && ruleId === undefined) return notUtf8('rule');
  const invalid = invalidIn({ userId, ruleId });
  if (invalid !== undefined) return failed(invalid.message);
  const { node } = call.door;
  const rows = isOfOneRule ? 1 : (node.rules()?.rules.length ?? 1);
  const tell = call.answerLater(rows * ROW_BYTES_MAX);
  node.look({ ask: 'look', userId, ruleId }, (answer) => tell(standingReply(answer)));
  return undefined;
}

function runRefund(call: Call): Reply | undefined {
  const { args } = call;
  if (!args.is(2, 'ID')) return SYNTAX_ERROR;
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  const requestId = args.text(3);
  if (requestId === undefined) return notUtf8('requestId');
  const invalid = invalidIn({ userId, requestId });
  if (invalid !== undefined) return failed(invalid.message);
  const tell = call.answerLater(0);
  call.door.node.refund({ ask: 'refund', userId, requestId }, (answer) => tell(refundReply(answer)));
  return undefined;
}
