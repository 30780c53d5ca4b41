/** Parses the options of a request for a grant: `[COST n] [AT ms] [RULE r] [ID id] [SETTLE]`, in any order. */
import type { Question } from '../../api/question.ts';
import type { CommandArguments } from '../command-arguments.ts';
import { type ErrorReply, failed, SYNTAX_ERROR } from '../reply.ts';

type Options = { -readonly [Field in keyof Omit<Question, 'descriptors'>]: Question[Field] };

/**
 * Parses the arguments from `from` on into `options`, each at most once. It does not check their bounds.
 *
 * @param hasRule true if the command takes a rule by name
 * @returns the error, or undefined
 */
export function readGrantOptions(
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

/** The error for an argument that is not UTF-8. */
export function notUtf8(field: string): ErrorReply {
  return failed(`${field} must be UTF-8, and some of its bytes are not`);
}
