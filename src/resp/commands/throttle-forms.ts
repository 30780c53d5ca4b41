/** Formats the answers of `CL.THROTTLE`: the five integers of redis-cell. */
import type { AskAnswer } from '../../api/question.ts';
import type { PeekAnswer } from '../../api/peek.ts';
import { secondsCeil } from '../../api/rate-limit-headers.ts';
import { parseStatedThrottle, type StatedThrottle } from '../../api/stated-rule.ts';
import { waitHelps } from '../../api/waiting.ts';
import { failed, type Reply } from '../reply.ts';
import type { ReplyWriter } from '../reply-writer.ts';
import { refusal, writeRefusal } from './answer-forms.ts';

/**
 * The cluster lengthens a period, so that its guarantee holds in real time despite clock drift: by this many parts
 * per million with the default `clockDriftPpm`, and by two milliseconds.
 */
const WIDENED_PPM = 600;
const WIDENED_MILLIS = 2;

/**
 * Writes `[limited 0/1, limit, remaining, retry after, reset after]` in whole seconds. A retry after of -1 means: no
 * wait is needed, or none helps.
 */
export function writeThrottle(writer: ReplyWriter, answer: AskAnswer, quantity: number): void {
  if (answer.kind !== 'decision') return writeRefusal(writer, answer);
  const { decision } = answer;
  const { allowed, ruleId, remaining, retryAfterMillis, resetMillis } = decision;
  const throttle = parseStatedThrottle(ruleId);
  if (throttle === undefined) return writer.error(failed('there is no such limit').text);
  const limit = throttle.maxBurst + 1;
  const isBlocked = decision.isBlocked === true;
  const helpsNot = allowed || quantity > limit || (isBlocked && !waitHelps(decision));
  // The end of a block does not depend on the period, so it is not scaled.
  const seconds = isBlocked ? secondsCeil(retryAfterMillis) : secondsOf(retryAfterMillis, throttle);
  const retryAfter = helpsNot ? -1 : Math.max(1, seconds);
  writer.fiveIntegers(allowed ? 0 : 1, limit, remaining, retryAfter, secondsOf(resetMillis, throttle));
}

/**
 * The answer to a peek at one limit, for a `quantity` of 0 or one that can never be granted. Other commands may have
 * used the same key with larger bursts. Then the key is limited even for quantity 0, until that excess has drained.
 */
export function throttleStatus(answer: PeekAnswer, quantity: number): Reply {
  if (answer.kind !== 'keyStatus') return refusal(answer);
  const [keyStatus] = answer.keyStatus.limits;
  const throttle = parseStatedThrottle(keyStatus?.ruleId ?? '');
  if (keyStatus === undefined || throttle === undefined) return failed('there is no such limit');
  const { remaining, resetMillis } = keyStatus;
  const { maxBurst, count, periodMillis } = throttle;
  const limit = maxBurst + 1;
  const beyondMillis = nominalMillis(resetMillis, throttle) - (limit * periodMillis) / count;
  const isBeyond = quantity === 0 && beyondMillis >= 1;
  const retryAfter = isBeyond ? Math.ceil(Math.floor(beyondMillis) / 1_000) : -1;
  const isLimited = quantity > 0 || isBeyond;
  return [isLimited ? 1 : 0, limit, remaining, retryAfter, secondsOf(resetMillis, throttle)];
}

/** Whole seconds, rounded up as in redis-cell. The lengthening of the period is removed first. */
function secondsOf(millis: number, throttle: StatedThrottle): number {
  return Math.ceil(nominalMillis(millis, throttle) / 1_000);
}

/** Converts milliseconds of the lengthened period to milliseconds of the requested period. */
function nominalMillis(millis: number, { periodMillis }: StatedThrottle): number {
  const widenedMillis = periodMillis + Math.ceil((periodMillis * WIDENED_PPM) / 1_000_000) + WIDENED_MILLIS;
  return Math.ceil((millis * periodMillis) / widenedMillis);
}
