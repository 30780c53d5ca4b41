/** `ALLOW` and `MATCH`: the commands that ask for a grant, and the options of both. */
import {
  type Question,
  DESCRIPTORS_MAX,
  invalidInQuestion,
  invalidInUser,
  questionOf,
  type UserQuestion,
} from '../../api/question.ts';
import type { CommandArguments } from '../command-arguments.ts';
import { type ErrorReply, notUtf8, SYNTAX_ERROR, failed, type Reply } from '../reply.ts';
import type { Call, Command } from '../command.ts';
import { matchReply, writeAllow } from './answer-forms.ts';

/** `ALLOW key [COST n] [RULE r] [AT timestampMillis] [ID requestId] [SETTLE]`: a request for a grant for a user. */
export const ALLOW: Command = {
  name: 'ALLOW',
  isShed: true,
  arity: -2,
  flags: ['write', 'fast'],
  key: 1,
  summary:
    'Asks for a grant by a rule of the cluster; with SETTLE it reports usage after the fact, which is charged even beyond the limits. Returns allowed 0 or 1, limit, remaining, milliseconds until a retry can succeed, and until all is free',
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

const FIRST_NAME = 2;
const FIRST_VALUE = 3;

/**
 * `MATCH count name value [name value ...] [COST n] [AT timestampMillis] [ID requestId] [SETTLE]`: a request for a
 * grant with descriptors; the rules find its limits. The count comes first, so that a descriptor may have any name.
 * For clients of Redis Cluster, the key is the value of the first descriptor: with `user` first, its slot is that of
 * the user's id.
 */
export const MATCH: Command = {
  name: 'MATCH',
  isShed: true,
  arity: -4,
  flags: ['write', 'fast'],
  key: FIRST_VALUE,
  summary:
    'Asks for a grant under all limits that the rules find for descriptors. Returns allowed 0 or 1, limit, remaining, milliseconds until a retry can succeed, milliseconds until the whole limit is free, and the rule, all of the limit that binds; a limit of -1 and no rule if nothing limits the request; UNMATCHED at the end of a denial because no rule matches',
  run: runMatch,
};

function runMatch(call: Call): Reply | undefined {
  const { args } = call;
  const count = args.integer(1);
  if (!(count >= 1 && count <= DESCRIPTORS_MAX))
    return failed(`count must be an integer from 1 to ${DESCRIPTORS_MAX}, of the descriptors that follow`);
  const end = FIRST_NAME + 2 * count;
  if (args.count < end) return failed(`count is ${count}, so ${2 * count} names and values must follow it`);
  const descriptors = descriptorsIn(args, end);
  if (!(descriptors instanceof Map)) return descriptors;
  const request: Question = { descriptors };
  const wrong = readGrantOptions(args, end, false, request);
  if (wrong !== undefined) return wrong;
  const invalid = invalidInQuestion(request);
  if (invalid !== undefined) return failed(invalid.message);
  call.askAtLength(request, matchReply);
  return undefined;
}

function descriptorsIn(args: CommandArguments, end: number): Map<string, string> | ErrorReply {
  const descriptors = new Map<string, string>();
  for (let i = FIRST_NAME; i < end; i += 2) {
    const name = args.text(i);
    if (name === undefined) return notUtf8('the name of a descriptor');
    const value = args.text(i + 1);
    if (value === undefined) return notUtf8('the value of a descriptor');
    // Only one of two values could be used, and the limit of the other one would not apply.
    if (descriptors.has(name)) return failed('each descriptor must be named only once');
    descriptors.set(name, value);
  }
  return descriptors;
}

type Options = { -readonly [Field in keyof Omit<Question, 'descriptors'>]: Question[Field] };

/**
 * Parses `[COST n] [AT ms] [RULE r] [ID id] [SETTLE]`, in any order and each at most once, from the argument `from` on
 * into `options`. It does not check their bounds.
 *
 * @param hasRule true if the command takes a rule by name
 * @returns the error, or undefined
 */
function readGrantOptions(
  args: CommandArguments,
  from: number,
  hasRule: boolean,
  options: Options,
): ErrorReply | undefined {
  for (let i = from; i < args.count; i += 1) {
    if (args.is(i, 'SETTLE') && options.settle === undefined) {
      options.settle = true;
      continue;
    }
    const name = i;
    i += 1;
    if (i === args.count) return SYNTAX_ERROR;
    if (args.is(name, 'COST') && options.cost === undefined) options.cost = args.integer(i);
    else if (args.is(name, 'AT') && options.timestampMillis === undefined)
      options.timestampMillis = args.integer(i);
    else if (hasRule && args.is(name, 'RULE') && options.rule === undefined) {
      options.rule = args.text(i);
      if (options.rule === undefined) return notUtf8('rule');
    } else if (args.is(name, 'ID') && options.requestId === undefined) {
      options.requestId = args.text(i);
      if (options.requestId === undefined) return notUtf8('requestId');
    } else return SYNTAX_ERROR;
  }
  return undefined;
}
