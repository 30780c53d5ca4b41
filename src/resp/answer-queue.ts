/**
 * The answers that a client waits for, in the order of its commands. Decisions arrive in any order; each waits in its place until
 * all before it can go out.
 */
import type { AskAnswer } from '../api/question.ts';
import type { ReplyWriter } from './reply-writer.ts';

/** Writes an answer down as the command that asked has it. `quantity` is what was asked for. */
export type AnswerFormat = (writer: ReplyWriter, answer: AskAnswer, quantity: number) => void;

/** The place of one answer. */
export interface Place {
  /** One of these is there when the answer is. */
  bytes: Buffer | undefined;
  answer: AskAnswer | undefined;
  /** How often `bytes` go out. */
  copies: number;
  readonly format: AnswerFormat | undefined;
  readonly quantity: number;
  next: Place | undefined;
}

export class AnswerQueue {
  #head: Place | undefined;
  #tail: Place | undefined;
  #count = 0;
  #heldBytes = 0;

  /** How many answers have not gone out. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of answers that wait for others, or are reserved for some to come. Decisions, which are small, are not counted. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isReady(): boolean {
    const head = this.#head;
    return head !== undefined && (head.bytes !== undefined || head.answer !== undefined);
  }

  /** An answer that is there already. */
  add(bytes: Buffer): void {
    this.#heldBytes += bytes.length;
    this.#append({ bytes, answer: undefined, copies: 1, format: undefined, quantity: 0, next: undefined });
  }

  /** The same, where it is likely that the answer before was this one: its bytes are not held once more. */
  addAgain(bytes: Buffer): void {
    const last = this.#tail;
    if (last?.bytes !== bytes) {
      this.add(bytes);
      return;
    }
    last.copies += 1;
    this.#count += 1;
  }

  /** Keeps a place for an answer other than a decision, and room for so many bytes of it; `fill` it. */
  reserveBytes(bytesReserved: number): Place {
    this.#heldBytes += bytesReserved;
    return this.reserve(undefined, 0);
  }

  /** Only the first answer of a place counts. @param bytesReserved for this place */
  fill(place: Place, bytes: Buffer, bytesReserved: number): void {
    if (place.bytes !== undefined) return;
    this.#heldBytes += bytes.length - bytesReserved;
    place.bytes = bytes;
  }

  /** Keeps a place for a decision; `settle` it. */
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

  /** Only the first answer of a place counts. */
  settle(place: Place, answer: AskAnswer): void {
    place.answer ??= answer;
  }

  /** Moves all answers that can go out to `writer`. */
  drainTo(writer: ReplyWriter): void {
    for (let place = this.#head; place !== undefined; place = this.#head) {
      if (place.bytes !== undefined) {
        this.#heldBytes -= place.bytes.length;
        writer.raw(place.bytes, place.copies);
      } else if (place.answer !== undefined) place.format?.(writer, place.answer, place.quantity);
      else return;
      this.#head = place.next;
      // A place in the old generation would keep the next one alive, that the one after it, and so on: see src/wire/by-id.ts.
      place.next = undefined;
      this.#count -= place.copies;
    }
    this.#tail = undefined;
  }

  /** Nobody waits any more. */
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
