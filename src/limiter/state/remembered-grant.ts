/** One grant that is remembered under its request id, as a row of words and a block of texts. Reads and writes them. */

import type { Decision } from '../decision.ts';
import type { Fingerprint } from '../fingerprint.ts';

/** A row: these floats first, */
const EXPIRES = 0;
const TERM = 1;
const INDEX = 2;
const TIME = 3;
const RETRY_AFTER = 4;
const RESET = 5;
const TIMESTAMP = 6;
/** then these words. The texts' address, hash and link belong to those who keep the row. */
const LIMIT = 14;
const REMAINING = 15;
const WINDOW = 16;
const POSITION = 17;
const COST = 18;
const LENGTHS = 19;
export const TEXTS = 20;
export const HASH = 21;
export const NEXT = 22;
export const IS_INDEXED = 23;
export const GRANT_WORDS = 24;

const NO_TIMESTAMP = -1;

/** A grant's whole answer but its rule, and what it was asked with. */
export interface RememberedGrant {
  /** The last millisecond of group time at which the answer may be given again. */
  readonly expiresMillis: number;
  readonly term: number;
  readonly index: number;
  readonly position: number;
  readonly timeMillis: number;
  readonly limit: number;
  readonly windowMillis: number;
  readonly remaining: number;
  readonly retryAfterMillis: number;
  readonly resetMillis: number;
  readonly cost: number;
  readonly timestampMillis: number | undefined;
  /** False where the request named no rule. */
  readonly namesRule: boolean;
}

/** Two lengths in one word: in bytes, of a user id and of a request id. */
export function keyLengths(userBytes: number, requestIdBytes: number): number {
  return userBytes | (requestIdBytes << 9);
}

const KEY_LENGTHS = 0x1_ffff;
const RULE_SHIFT = 17;
const NAMES_RULE = 1 << 25;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Points to a grant, wherever it lies. Its texts are those of user and request, from a word's start that of its rule. */
export class GrantView {
  words: Uint32Array = new Uint32Array(0);
  doubles: Float64Array = new Float64Array(0);
  at = 0;
  bytes: Uint8Array = new Uint8Array(0);
  bytesAt = 0;

  write(grant: RememberedGrant, lengths: number, ruleIdBytes: number): void {
    const { doubles, words, at } = this;
    const double = at >>> 1;
    doubles[double + EXPIRES] = grant.expiresMillis;
    doubles[double + TERM] = grant.term;
    doubles[double + INDEX] = grant.index;
    doubles[double + TIME] = grant.timeMillis;
    doubles[double + RETRY_AFTER] = grant.retryAfterMillis;
    doubles[double + RESET] = grant.resetMillis;
    doubles[double + TIMESTAMP] = grant.timestampMillis ?? NO_TIMESTAMP;
    words[at + LIMIT] = grant.limit;
    words[at + REMAINING] = grant.remaining;
    words[at + WINDOW] = grant.windowMillis;
    words[at + POSITION] = grant.position;
    words[at + COST] = grant.cost;
    words[at + LENGTHS] = lengths | (ruleIdBytes << RULE_SHIFT) | (grant.namesRule ? NAMES_RULE : 0);
  }

  get expiresMillis(): number {
    return this.doubles[(this.at >>> 1) + EXPIRES]!;
  }

  get keyLengths(): number {
    return this.words[this.at + LENGTHS]! & KEY_LENGTHS;
  }

  get userBytes(): number {
    return this.words[this.at + LENGTHS]! & 0x1ff;
  }

  get requestIdBytes(): number {
    return (this.words[this.at + LENGTHS]! >>> 9) & 0xff;
  }

  get ruleIdBytes(): number {
    return (this.words[this.at + LENGTHS]! >>> RULE_SHIFT) & 0xff;
  }

  /** Where the rule's id begins among the texts. */
  get ruleIdFrom(): number {
    return (this.userBytes + this.requestIdBytes + 3) & ~3;
  }

  /** Of all texts. */
  get textBytes(): number {
    return this.ruleIdFrom + this.ruleIdBytes;
  }

  get ruleId(): string {
    const from = this.bytesAt + this.ruleIdFrom;
    return decoder.decode(this.bytes.subarray(from, from + this.ruleIdBytes));
  }

  get grant(): RememberedGrant {
    const { doubles, words, at } = this;
    const double = at >>> 1;
    const timestampMillis = doubles[double + TIMESTAMP]!;
    return {
      expiresMillis: this.expiresMillis,
      term: doubles[double + TERM]!,
      index: doubles[double + INDEX]!,
      position: words[at + POSITION]!,
      timeMillis: doubles[double + TIME]!,
      limit: words[at + LIMIT]!,
      windowMillis: words[at + WINDOW]!,
      remaining: words[at + REMAINING]!,
      retryAfterMillis: doubles[double + RETRY_AFTER]!,
      resetMillis: doubles[double + RESET]!,
      cost: words[at + COST]!,
      timestampMillis: timestampMillis === NO_TIMESTAMP ? undefined : timestampMillis,
      namesRule: (words[at + LENGTHS]! & NAMES_RULE) !== 0,
    };
  }

  /** The answer, to be given again. */
  get decision(): Decision {
    const { limit, windowMillis, remaining, retryAfterMillis, resetMillis, ...grant } = this.grant;
    const { term, index, position, timeMillis } = grant;
    return {
      allowed: true,
      ruleId: this.ruleId,
      limit,
      windowMillis,
      remaining,
      retryAfterMillis,
      resetMillis,
      decided: { term, index, position, timeMillis },
    };
  }

  /** What the grant was asked with. */
  get fingerprint(): Fingerprint {
    const { namesRule, cost, timestampMillis } = this.grant;
    return { ruleId: namesRule ? this.ruleId : '', cost, timestampMillis };
  }
}
