/**
 * `CL.THROTTLE key max_burst count period [quantity]`, the command of redis-cell: the limit comes with every request.
 * A key has one state, to which the numbers of each command are applied.
 */
import type { PeekQuestion } from '../../api/peek.ts';
import { invalidInUser, questionOf } from '../../api/question.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { type StatedThrottle, statedThrottleId } from '../../api/stated-rule.ts';
import { GLOBAL_KEY, userKey } from '../../api/key-text.ts';
import type { Call, Command } from '../command.ts';
import { failed, type Reply, notUtf8 } from '../reply.ts';
import { throttleStatus, writeThrottle } from './throttle-forms.ts';

/** The most bytes of an argument that an error shows. */
const SHOWN_BYTES_MAX = 64;
const USAGE =
  'Cell error: Usage: CL.THROTTLE <key> <max_burst> <count per period> <period seconds> [<quantity>]';
const FIRST_NUMBER = 2;

type Rate = Pick<StatedThrottle, 'count' | 'periodMillis'>;

/** The command `CL.THROTTLE`. */
export const THROTTLE: Command = {
  name: 'CL.THROTTLE',
  isShed: true,
  // It has its own error text for a wrong number of arguments.
  arity: -1,
  flags: ['write', 'fast'],
  key: 1,
  summary:
    'Asks for a grant by the limit it states: max_burst + 1 at once, count per period. Returns limited 0 or 1, limit, remaining, seconds until a retry can succeed or -1, and seconds until the whole limit is free',
  run: runThrottle,
};

function runThrottle(call: Call): Reply | undefined {
  const { args } = call;
  if (args.count !== 5 && args.count !== 6) return failed(USAGE);
  for (let i = FIRST_NUMBER; i < args.count; i += 1) {
    if (Number.isNaN(args.integer(i))) {
      return failed(`Couldn't parse as integer: ${args.shown(i, SHOWN_BYTES_MAX)}`);
    }
  }
  const burst = args.integer(2);
  const count = args.integer(3);
  const periodSeconds = args.integer(4);
  const quantity = args.count === 6 ? args.integer(5) : 1;
  if (count === 0 || periodSeconds === 0) return failed('Zero rates are not supported');
  if (count < 0 || periodSeconds < 0) return failed('count and period must be positive');
  if (burst < 0 || burst >= LIMIT_MAX)
    return failed(`max_burst must be an integer from 0 to ${LIMIT_MAX - 1}`);
  if (quantity < 0) return failed('quantity must not be negative');
  const limit = burst + 1;
  const rate = rateOf(limit, count, periodSeconds);
  if (rate === undefined) {
    return failed(
      `(max_burst + 1) * period / count must be at most ${WINDOW_MILLIS_MAX / 1000} seconds, which is 31 days`,
    );
  }
  const userId = args.text(1);
  if (userId === undefined) return notUtf8('userId');
  const rule = statedThrottleId({ maxBurst: burst, ...rate });
  const invalid = invalidInUser({ userId, rule });
  if (invalid !== undefined) return failed(invalid.message);
  if (quantity === 0 || quantity > limit) peek(call, { key: userKey(userId) ?? GLOBAL_KEY, rule }, quantity);
  else call.ask(questionOf({ userId, rule, cost: quantity }), writeThrottle, quantity);
  return undefined;
}

/**
 * Answers a command with quantity 0, or with more than can ever be granted: it returns the status, and nothing
 * reaches the log.
 */
function peek(call: Call, question: PeekQuestion, quantity: number): void {
  const reply = call.answerLater(0);
  call.listener.node.peek(question, (answer) => reply(throttleStatus(answer, quantity)));
}

/**
 * The rate as a stated rule, within its bounds: the requested rate if possible. Otherwise the same rate with a
 * shorter period, which is rounded up to a millisecond, so that the rate is never exceeded. Undefined if the whole
 * limit would take too long.
 */
function rateOf(limit: number, count: number, periodSeconds: number): Rate | undefined {
  // Fast path without big integers; most calls end here.
  const millis = periodSeconds * 1000;
  if (count <= LIMIT_MAX && millis <= WINDOW_MILLIS_MAX && limit <= count)
    return { count, periodMillis: millis };
  const longest = BigInt(WINDOW_MILLIS_MAX) * BigInt(count);
  const periodMillis = BigInt(periodSeconds) * 1000n;
  if (BigInt(limit) * periodMillis > longest) return undefined;
  const most = longest / periodMillis;
  const taken = Math.min(count, LIMIT_MAX, most > LIMIT_MAX ? LIMIT_MAX : Number(most));
  const taking = (BigInt(taken) * periodMillis + BigInt(count) - 1n) / BigInt(count);
  return { count: taken, periodMillis: Number(taking) };
}
