/**
 * One grant that is remembered under its request id: its complete answer and the request's fingerprint, as a row of
 * words and a block of texts. Also writes it to a snapshot and reads it back.
 */

import { COST_MAX, TIMESTAMP_MILLIS_MAX } from '../../api/request.ts';
import type { Decision } from '../decision.ts';
import type { Fingerprint, Question } from '../question.ts';
import { BATCH_REQUESTS_MAX } from '../log/batch.ts';
import { METER_KINDS, type MeterKind } from '../meters/meter-of.ts';
import { FIXED_LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { DEFAULT_RULE } from '../rules.ts';
import type { ByteReader } from '../../bytes/byte-reader.ts';
import type { ByteWriter } from '../../bytes/byte-writer.ts';

/** A row begins with floats (two words each). These are their places among the floats of the row. */
const EXPIRES = 0;
const TERM = 1;
const INDEX = 2;
const TIME = 3;
const RETRY_AFTER = 4;
const RESET = 5;
/** Timestamp + 1; 0 if the request had none. If the request was matched by rules: the digest of what it asked. */
const TIMESTAMP = 6;
const WAIT = 7;
const RULES_VERSION = 8;
/** 0 if the request has no reservations. */
const ATTEMPT = 9;
/**
 * Words follow the floats. These are their places in the row. `TEXTS`, `HASH` and `NEXT` belong to the owner of the
 * row.
 */
const LIMIT = 20;
const REMAINING = 21;
const WINDOW = 22;
const POSITION = 23;
const COST = 24;
/** The lengths of the texts, and flags. */
const LENGTHS = 25;
export const TEXTS = 26;
export const HASH = 27;
export const NEXT = 28;
/** `INDEXED`, which belongs to the owner of the row, and the kind of the meter. */
export const KIND = 29;
/** The number of words of a row. */
export const GRANT_WORDS = 30;

/** A number of a row, as a snapshot stores it. */
interface Column {
  readonly name: string;
  readonly at: number;
  readonly isFloat: boolean;
  readonly min: number;
  readonly max: number;
}

/** In the order of a snapshot. */
const COLUMNS: readonly Column[] = [
  word('cost', COST, 1, COST_MAX),
  float('timestamp', TIMESTAMP, TIMESTAMP_MILLIS_MAX + 1),
  float('expiry', EXPIRES),
  float('term', TERM),
  float('index', INDEX),
  word('position', POSITION, 0, BATCH_REQUESTS_MAX - 1),
  float('time', TIME),
  word('limit', LIMIT, 0, FIXED_LIMIT_MAX),
  word('window', WINDOW, 1, WINDOW_MILLIS_MAX),
  word('remaining', REMAINING, 0, FIXED_LIMIT_MAX),
  float('retry after', RETRY_AFTER),
  float('reset', RESET),
  float('wait', WAIT),
  float('version of the rules', RULES_VERSION),
  float('attempt', ATTEMPT),
];

/** Bits of `LENGTHS` for the bytes of a user id, of at most `KEY_BYTES_MAX`. */
const USER_BITS = 11;
const USER_MASK = (1 << USER_BITS) - 1;
/** The same for a request id and for a rule id: `REQUEST_ID_BYTES_MAX` and `RULE_ID_BYTES_MAX` are below 256. */
const ID_BITS = 8;
const ID_MASK = (1 << ID_BITS) - 1;

/** The byte lengths of a user id and a request id in one word. */
export function keyLengths(userBytes: number, requestIdBytes: number): number {
  return userBytes | (requestIdBytes << USER_BITS);
}

const RULE_SHIFT = USER_BITS + ID_BITS;
const KEY_LENGTHS = (1 << RULE_SHIFT) - 1;
/** Unset if the request named no rule. */
const NAMES_RULE = 1 << 27;
/** Set if the grant was refunded. */
const REFUNDED = 1 << 28;
/** In `KIND`: the index finds the grant. */
export const INDEXED = 1;
/** In `KIND`, above `INDEXED`: the index of its meter in `METER_KINDS`. */
const KIND_SHIFT = 1;
/** Set if `TIMESTAMP` contains a digest. */
const HAS_DIGEST = 1 << 31;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The facts that are remembered of a grant besides its answer. */
interface RecordedWith {
  readonly asked: Question;
  /** The last millisecond of group time at which the answer may be repeated. */
  readonly expiresMillis: number;
  readonly meterKind: MeterKind;
}

/**
 * Points to a grant. Its texts are the user id followed by the request id, then, at the start of a word, the rule id.
 */
export class GrantView {
  words: Uint32Array = new Uint32Array(0);
  doubles: Float64Array = new Float64Array(0);
  at = 0;
  bytes: Uint8Array = new Uint8Array(0);
  bytesAt = 0;
  /** Show the grant as it was before its refund. */
  hidesRefund = false;

  /** Sets the lengths of its texts; `lengths` is a result of `keyLengths`. */
  setLengths(lengths: number, ruleIdBytes: number): void {
    this.words[this.at + LENGTHS] = lengths | (ruleIdBytes << RULE_SHIFT);
  }

  /** Fills in the numbers. The texts are there already. */
  record(decision: Decision, { asked, expiresMillis, meterKind }: RecordedWith): void {
    const { doubles, words, at } = this;
    const double = at >>> 1;
    const { decided } = decision;
    doubles[double + EXPIRES] = expiresMillis;
    doubles[double + TERM] = decided.term;
    doubles[double + INDEX] = decided.index;
    doubles[double + TIME] = decided.timeMillis;
    doubles[double + RETRY_AFTER] = decision.retryAfterMillis;
    doubles[double + RESET] = decision.resetMillis;
    doubles[double + WAIT] = decision.waitMillis ?? 0;
    doubles[double + RULES_VERSION] = decision.rulesVersion;
    const { timestampMillis, askedDigest, attempt = 0 } = asked;
    doubles[double + ATTEMPT] = attempt;
    doubles[double + TIMESTAMP] = askedDigest ?? (timestampMillis === undefined ? 0 : timestampMillis + 1);
    if (askedDigest !== undefined) words[at + LENGTHS]! |= HAS_DIGEST;
    words[at + LIMIT] = decision.limit;
    words[at + REMAINING] = decision.remaining;
    words[at + WINDOW] = decision.windowMillis;
    words[at + POSITION] = decided.position ?? 0;
    words[at + COST] = asked.cost;
    if (asked.ruleId !== DEFAULT_RULE) words[at + LENGTHS]! |= NAMES_RULE;
    words[at + KIND]! |= METER_KINDS.indexOf(meterKind) << KIND_SHIFT;
  }

  /** The answer, for a retry. */
  get decision(): Decision {
    const { doubles, words, at } = this;
    const double = at >>> 1;
    const waitMillis = doubles[double + WAIT]!;
    return {
      allowed: true,
      ruleId: this.ruleId,
      limit: words[at + LIMIT]!,
      windowMillis: words[at + WINDOW]!,
      remaining: this.remaining,
      retryAfterMillis: doubles[double + RETRY_AFTER]!,
      resetMillis: doubles[double + RESET]!,
      decided: {
        term: doubles[double + TERM]!,
        index: doubles[double + INDEX]!,
        position: words[at + POSITION]!,
        timeMillis: doubles[double + TIME]!,
      },
      rulesVersion: doubles[double + RULES_VERSION]!,
      ...(waitMillis > 0 && { waitMillis }),
    };
  }

  /** The request of the grant, for comparison. */
  get fingerprint(): Fingerprint {
    const { doubles, at } = this;
    const timestamp = doubles[(at >>> 1) + TIMESTAMP]!;
    const hasTime = timestamp > 0 && !this.#hasDigest;
    return {
      ruleId: this.#namesRule ? this.ruleId : DEFAULT_RULE,
      cost: this.cost,
      timestampMillis: hasTime ? timestamp - 1 : undefined,
      askedDigest: this.#hasDigest ? timestamp : undefined,
    };
  }

  /** Writes everything except the texts and their lengths. */
  writeTo(out: ByteWriter): void {
    const { doubles, words, at } = this;
    out.byte(this.#namesRule ? 1 : 0);
    out.byte(this.isRefunded ? 1 : 0);
    out.byte(this.#hasDigest ? 1 : 0);
    out.integer(this.#meterNumber);
    for (const column of COLUMNS) {
      out.integer(column.isFloat ? doubles[(at >>> 1) + column.at]! : words[at + column.at]!);
    }
  }

  /** The inverse of `writeTo`. The texts and their lengths are there already. @throws InvalidSnapshotError */
  readFrom(input: ByteReader): void {
    const { doubles, words, at } = this;
    if (input.flag('named rule')) words[at + LENGTHS]! |= NAMES_RULE;
    if (input.flag('refunded')) this.refund();
    if (input.flag('matched')) words[at + LENGTHS]! |= HAS_DIGEST;
    words[at + KIND]! |= input.integer('meter', 0, METER_KINDS.length - 1) << KIND_SHIFT;
    for (const column of COLUMNS) {
      const value = input.integer(column.name, column.min, column.max);
      if (column.isFloat) doubles[(at >>> 1) + column.at] = value;
      else words[at + column.at] = value;
    }
  }

  get cost(): number {
    return this.words[this.at + COST]!;
  }

  /** See `AllowRequest.attempt`. */
  get attempt(): number | undefined {
    return this.doubles[(this.at >>> 1) + ATTEMPT]! || undefined;
  }

  get remaining(): number {
    return this.words[this.at + REMAINING]!;
  }

  /** The meter that counted the grant. */
  get meterKind(): MeterKind {
    return METER_KINDS[this.#meterNumber]!;
  }

  get #meterNumber(): number {
    return this.words[this.at + KIND]! >>> KIND_SHIFT;
  }

  /** The entry that made the grant. */
  get decidedIndex(): number {
    return this.doubles[(this.at >>> 1) + INDEX]!;
  }

  /** The timestamp that the grant was recorded with. */
  get decidedMillis(): number {
    return this.doubles[(this.at >>> 1) + TIME]!;
  }

  get expiresMillis(): number {
    return this.doubles[(this.at >>> 1) + EXPIRES]!;
  }

  /** It was refunded. */
  get isRefunded(): boolean {
    return !this.hidesRefund && (this.words[this.at + LENGTHS]! & REFUNDED) !== 0;
  }

  refund(): void {
    this.words[this.at + LENGTHS]! |= REFUNDED;
  }

  get keyLengths(): number {
    return this.words[this.at + LENGTHS]! & KEY_LENGTHS;
  }

  get userBytes(): number {
    return this.words[this.at + LENGTHS]! & USER_MASK;
  }

  get requestIdBytes(): number {
    return (this.words[this.at + LENGTHS]! >>> USER_BITS) & ID_MASK;
  }

  get ruleIdBytes(): number {
    return (this.words[this.at + LENGTHS]! >>> RULE_SHIFT) & ID_MASK;
  }

  get #hasDigest(): boolean {
    return (this.words[this.at + LENGTHS]! & HAS_DIGEST) !== 0;
  }

  /**
   * This row is one more limit of a request; the row of the first limit comes before. The user id is the key of the
   * limit.
   */
  get isFurther(): boolean {
    return this.requestIdBytes === 0;
  }

  get #namesRule(): boolean {
    return (this.words[this.at + LENGTHS]! & NAMES_RULE) !== 0;
  }

  /** Where the rule id begins among the texts. */
  get ruleIdFrom(): number {
    return (this.userBytes + this.requestIdBytes + 3) & ~3;
  }

  /** The length of all texts. */
  get textBytes(): number {
    return this.ruleIdFrom + this.ruleIdBytes;
  }

  get ruleId(): string {
    const from = this.bytesAt + this.ruleIdFrom;
    return decoder.decode(this.bytes.subarray(from, from + this.ruleIdBytes));
  }
}

function word(name: string, at: number, min: number, max: number): Column {
  return { name, at, isFloat: false, min, max };
}

function float(name: string, at: number, max: number = Number.MAX_SAFE_INTEGER): Column {
  return { name, at, isFloat: true, min: 0, max };
}
