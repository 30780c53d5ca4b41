/**
 * The encoded refusal of a command because of load. It is encoded only once, because refusing must cost far less than
 * deciding.
 */
import { writeAllow } from './commands/answer-forms.ts';
import { ReplyWriter } from './reply-writer.ts';

/** The same bytes for every command that can be refused. */
export const SHED_BYTES = bytesOfShed();

function bytesOfShed(): Buffer {
  const writer = new ReplyWriter();
  writeAllow(writer, { kind: 'unavailable', reason: 'overloaded', proposed: false });
  return writer.take();
}
