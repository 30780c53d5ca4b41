/**
 * Counts the answers in a stream of RESP2 or RESP3 replies by kind, from chunks of any size. To stay fast it makes no
 * object for a reply: it reads only the first integer, and whether the reply is an error.
 */

const CR_LF_BYTES = 2;
const LINE_FEED = 0x0a;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

const ARRAY = 0x2a; // *
const SET = 0x7e; // ~
const PUSH = 0x3e; // >
const MAP = 0x25; // %
const BULK = 0x24; // $
const BULK_ERROR = 0x21; // !
const VERBATIM = 0x3d; // =
const INTEGER = 0x3a; // :
const ERROR = 0x2d; // -
/** Types of one-line values whose content does not matter: + _ # , ( */
const LINES = new Set([0x2b, 0x5f, 0x23, 0x2c, 0x28]);

export type AnswerKind = 'grant' | 'denial' | 'error';

export interface ReplyMeaning {
  /** First integer of a granting reply, 0 or 1. The other value denies. */
  readonly grantValue: 0 | 1;
  /** Set if replies of WAIT follow the answers. */
  readonly wait?: WaitMeaning;
}

export interface WaitMeaning {
  /** Answers before each reply of WAIT. */
  readonly answers: number;
  /** The answers count only if WAIT reports at least this many replicas. */
  readonly replicasMin: number;
}

/** The stream is not RESP, or does not fit the requests. Then the counts so far are worthless. */
export class ReplyStreamError extends Error {
  readonly code = 'REPLY_STREAM';
}

export class ReplyCounter {
  grants = 0;
  denials = 0;
  errors = 0;
  readonly #grantValue: number;
  readonly #wait: WaitMeaning | undefined;
  readonly #counted: (kind: AnswerKind) => void;
  /** Missing bytes of a bulk value, including its line end. */
  #skipBytes = 0;
  #isInLine = false;
  #type = 0;
  #number = 0;
  #isNegative = false;
  /** Missing values of the current reply. */
  #openValues = 1;
  #firstInteger = -1;
  #hasInteger = false;
  #isError = false;
  /** Answers that still wait for their WAIT. */
  readonly #waiting: AnswerKind[] = [];

  /** @param counted called for each answer, in order */
  constructor({ grantValue, wait }: ReplyMeaning, counted: (kind: AnswerKind) => void = () => {}) {
    this.#grantValue = grantValue;
    this.#wait = wait;
    this.#counted = counted;
  }

  get answers(): number {
    return this.grants + this.denials + this.errors;
  }

  /** Reads the next chunk. @throws ReplyStreamError if it does not continue the stream */
  feed(chunk: Uint8Array, length = chunk.length): void {
    for (let i = 0; i < length;) {
      if (this.#skipBytes > 0) {
        const step = Math.min(this.#skipBytes, length - i);
        this.#skipBytes -= step;
        i += step;
        if (this.#skipBytes === 0) this.#valueEnds();
        continue;
      }
      if (!this.#isInLine) {
        this.#isInLine = true;
        this.#type = chunk[i] ?? 0;
        this.#number = 0;
        this.#isNegative = false;
        i += 1;
      }
      i = this.#readLine(chunk, i, length);
    }
  }

  /** Reads to the end of the line or of the chunk. Returns where it stopped. */
  #readLine(chunk: Uint8Array, from: number, length: number): number {
    let number = this.#number;
    for (let i = from; i < length; i += 1) {
      const byte = chunk[i] ?? 0;
      if (byte >= ZERO && byte <= NINE) number = number * 10 + byte - ZERO;
      else if (byte === MINUS) this.#isNegative = true;
      else if (byte === LINE_FEED) {
        this.#number = number;
        this.#lineEnds();
        return i + 1;
      }
    }
    this.#number = number;
    return length;
  }

  #lineEnds(): void {
    this.#isInLine = false;
    const number = this.#isNegative ? -this.#number : this.#number;
    switch (this.#type) {
      case INTEGER:
        if (!this.#hasInteger) this.#firstInteger = number;
        this.#hasInteger = true;
        break;
      case ERROR:
        this.#isError = true;
        break;
      case ARRAY:
      case SET:
      case PUSH:
        this.#openValues += Math.max(0, number);
        break;
      case MAP:
        this.#openValues += 2 * Math.max(0, number);
        break;
      case BULK_ERROR:
        this.#isError = true;
        this.#skipBytes = number + CR_LF_BYTES;
        return;
      case BULK:
      case VERBATIM:
        if (number < 0) break;
        this.#skipBytes = number + CR_LF_BYTES;
        return;
      default:
        if (LINES.has(this.#type)) break;
        throw new ReplyStreamError(`a reply begins with byte ${this.#type}, which is no type of RESP`);
    }
    this.#valueEnds();
  }

  #valueEnds(): void {
    this.#openValues -= 1;
    if (this.#openValues > 0) return;
    const value = this.#hasInteger ? this.#firstInteger : -1;
    const isError = this.#isError;
    this.#openValues = 1;
    this.#hasInteger = false;
    this.#isError = false;
    if (this.#wait !== undefined && this.#waiting.length === this.#wait.answers) {
      const isHeld = !isError && value >= this.#wait.replicasMin;
      for (const each of this.#waiting.splice(0)) this.#count(isHeld ? each : 'error');
      return;
    }
    const kind =
      isError || (value !== 0 && value !== 1) ? 'error' : value === this.#grantValue ? 'grant' : 'denial';
    if (this.#wait === undefined) this.#count(kind);
    else this.#waiting.push(kind);
  }

  #count(kind: AnswerKind): void {
    this.#counted(kind);
    if (kind === 'grant') this.grants += 1;
    else if (kind === 'denial') this.denials += 1;
    else this.errors += 1;
  }
}
