/**
 * The answers of one connection, in the order of its commands. Decisions arrive in any order. Each waits in its place
 * until all answers before it can be sent.
 */
import type { AskAnswer } from '../api/question.ts';
import type { ReplyWriter } from './reply-writer.ts';

/** Writes an answer in the form of the command that asked. `quantity` is the cost the command asked for. */
export type AnswerFormat = (writer: ReplyWriter, answer: AskAnswer, quantity: number) => void;

/** The place of one answer in the queue. */
export interface Place {
  /** One of these two is set when the answer has arrived. */
  bytes: Buffer | undefined;
  answer: AskAnswer | undefined;
  /** How many times `bytes` are sent. */
  copies: number;
  readonly format: AnswerFormat | undefined;
  readonly quantity: number;
  next: Place | undefined;
}

/** The answers that one client waits for. */
export class AnswerQueue {
  #head: Place | undefined;
  #tail: Place | undefined;
  #count = 0;
  #heldBytes = 0;

  /** The number of answers that have not been sent. */
  get count(): number {
    return this.#count;
  }

  /**
   * The bytes of answers that wait for others, plus the bytes reserved for answers to come. Decisions are not
   * counted, because they are small.
   */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isReady(): boolean {
    const head = this.#head;
    return head !== undefined && (head.bytes !== undefined || head.answer !== undefined);
  }

  /** Adds an answer that is ready. */
  add(bytes: Buffer): void {
    this.#heldBytes += bytes.length;
    this.#append({ bytes, answer: undefined, copies: 1, format: undefined, quantity: 0, next: undefined });
  }

  /** Like `add`, for an answer that is likely the same as the one before it. Then its bytes are not stored again. */
  addAgain(bytes: Buffer): void {
    const last = this.#tail;
    if (last?.bytes !== bytes) {
      this.add(bytes);
      return;
    }
    last.copies += 1;
    this.#count += 1;
  }

  /** Reserves a place, and this many bytes, for an answer that is not a decision. `fill` sets it. */
  reserveBytes(bytesReserved: number): Place {
    this.#heldBytes += bytesReserved;
    return this.reserve(undefined, 0);
  }

  /**
   * Sets the answer of a place; a second call has no effect. @param bytesReserved the bytes that were reserved for
   * this place
   */
  fill(place: Place, bytes: Buffer, bytesReserved: number): void {
    if (place.bytes !== undefined) return;
    this.#heldBytes += bytes.length - bytesReserved;
    place.bytes = bytes;
  }

  /** Reserves a place for a decision. `settle` sets it. */
  reserve(format: AnswerFormat | undefined, quantity: number): Place {
    const place: Place = {
      bytes: undefined,
      answer: undefined,
      copies: 1,
      format,
      quantity,
      next: undefined,
    };
    this.#append(place);
    return place;
  }

  /** Sets the decision of a place; a second call has no effect. */
  settle(place: Place, answer: AskAnswer): void {
    place.answer ??= answer;
  }

  /** Moves all answers that can be sent to `writer`. */
  drainTo(writer: ReplyWriter): void {
    for (let place = this.#head; place !== undefined; place = this.#head) {
      if (place.bytes !== undefined) {
        this.#heldBytes -= place.bytes.length;
        writer.raw(place.bytes, place.copies);
      } else if (place.answer !== undefined) place.format?.(writer, place.answer, place.quantity);
      else return;
      this.#head = place.next;
      // If this place is in the old generation of the heap, it would keep the next one alive, which would keep the
      // one after it, and so on (see src/wire/by-id.ts).
      place.next = undefined;
      this.#count -= place.copies;
    }
    this.#tail = undefined;
  }

  /** Drops all answers; the connection is closed. */
  clear(): void {
    this.#head = undefined;
    this.#tail = undefined;
    this.#count = 0;
    this.#heldBytes = 0;
  }

  #append(place: Place): void {
    if (this.#tail === undefined) this.#head = place;
    else this.#tail.next = place;
    this.#tail = place;
    this.#count += 1;
  }
}
