/** The refusal of a command that is not looked at any further, made once: refusing must cost far less than deciding. */
import { writeAllow } from './commands/answer-forms.ts';
import { ReplyWriter } from './reply-writer.ts';

/** As every command that can be shed has it. */
export const SHED_BYTES = bytesOfShed();

function bytesOfShed(): Buffer {
  const writer = new ReplyWriter();
  writeAllow(writer, { kind: 'unavailable', reason: 'overloaded', proposed: false });
  return writer.take();
}
