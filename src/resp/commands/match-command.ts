/**
 * `MATCH count name value [name value ...] [COST n] [AT timestampMillis] [ID requestId] [SETTLE]`: a request for a
 * grant with descriptors; the rules find its limits. The count comes first, so that a descriptor may have any name.
 * For clients of Redis Cluster, the key is the value of the first descriptor: with `user` first, its slot is that of
 * the user's id.
 */
import { DESCRIPTORS_MAX, type Question, invalidInQuestion } from '../../api/question.ts';
import type { Call, Command } from '../command.ts';
import type { CommandArguments } from '../command-arguments.ts';
import { type ErrorReply, failed, type Reply } from '../reply.ts';
import { notUtf8, readGrantOptions } from './grant-options.ts';
import { matchReply } from './answer-forms.ts';

const FIRST_NAME = 2;
const FIRST_VALUE = 3;

/** The command `MATCH`. */
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
