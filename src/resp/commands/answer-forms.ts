/** Answers to requests for a grant, as the commands that ask for one have them. Only a decision can say `allowed`. */
import type { AllowAnswer } from '../../api/answer.ts';
import { UNAVAILABLE } from '../../api/refusals.ts';
import type { ReplyWriter } from '../reply-writer.ts';

/** `[allowed 0/1, limit, remaining, retryAfterMillis, resetMillis]`. */
export function writeAllow(writer: ReplyWriter, answer: AllowAnswer): void {
  if (answer.kind !== 'decision') {
    writeRefusal(writer, answer);
    return;
  }
  const { allowed, limit, remaining, retryAfterMillis, resetMillis } = answer.decision;
  writer.fiveIntegers(allowed ? 1 : 0, limit, remaining, retryAfterMillis, resetMillis);
}

/** `[limited 0/1, limit, remaining, retry after, reset after]`, in whole seconds; -1: it need not, or will never fit. */
export function writeThrottle(writer: ReplyWriter, answer: AllowAnswer, quantity: number): void {
  if (answer.kind !== 'decision') {
    writeRefusal(writer, answer);
    return;
  }
  const { allowed, limit, remaining, retryAfterMillis, resetMillis } = answer.decision;
  const retryAfter = allowed || quantity > limit ? -1 : Math.ceil(retryAfterMillis / 1000);
  writer.fiveIntegers(allowed ? 0 : 1, limit, remaining, retryAfter, Math.ceil(resetMillis / 1000));
}

function writeRefusal(
  writer: ReplyWriter,
  answer: Exclude<AllowAnswer, { readonly kind: 'decision' }>,
): void {
  switch (answer.kind) {
    case 'invalid':
    case 'conflict':
      writer.error(`ERR ${answer.message}`);
      return;
    case 'unavailable': {
      const doubt = answer.proposed ? ', but the request may have been counted' : '';
      const { text } = UNAVAILABLE[answer.reason];
      writer.error(`UNAVAILABLE ${answer.reason} ${text}; nothing was granted${doubt}`);
    }
  }
}
