/** The refusal of a command that is not looked at any further, made once: refusing must cost far less than deciding. */
import type { AllowRequest } from '../api/request.ts';
import { writeAllow } from './commands/answer-forms.ts';
import { ReplyWriter } from './reply-writer.ts';

/** Stands for a request whose arguments nobody read. */
export const NOT_READ: AllowRequest = { userId: '', ruleId: '' };
export const SHED = { kind: 'unavailable', reason: 'overloaded', proposed: false } as const;
/** As every command that can be shed has it. */
export const SHED_BYTES = bytesOfShed();

function bytesOfShed(): Buffer {
  const writer = new ReplyWriter();
  writeAllow(writer, SHED);
  return writer.take();
}
