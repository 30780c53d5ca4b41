/**
 * Decisions that took long, and where their time went, as lines of the log: few, whatever happens, and without the id of
 * any user. It is told of entries and of answers that somebody timed anyway; what was not slow costs a comparison.
 *
 * A leader tells of an entry: how long it was queued, committed and applied, and how long the disk here took meanwhile. A node
 * whose door was asked tells of an answer: the same partition, term and index lead from one line to the other.
 */
import { createHash } from 'node:crypto';
import type { AskAnswer, Question } from '../api/question.ts';
import type { UserRequest } from '../api/user-request.ts';
import type { EntryTiming } from '../partition/entry-timing.ts';

export interface SlowDecisionsInit {
  readonly logger: { warn(fields: object, message: string): void };
  readonly monotonicMillis: () => number;
}

/** Far above what a decision takes on a disk and a network that work. */
export const SLOW_MILLIS = 100;
/** Between two lines. */
export const LINE_MILLIS = 10_000;
/** Writes that are remembered: an entry that was slow waited for the last few at most. */
const WRITES_KEPT = 16;
const DIGEST_CHARACTERS = 16;

interface Write {
  readonly endedMillis: number;
  readonly millis: number;
}

export class SlowDecisions {
  readonly #init: SlowDecisionsInit;
  readonly #writes: Write[] = [];
  #nextWrite = 0;
  #lineMillis = Number.NEGATIVE_INFINITY;
  #unsaid = 0;
  #count = 0;

  constructor(init: SlowDecisionsInit) {
    this.#init = init;
  }

  /** Slow entries and answers since the node started. */
  get count(): number {
    return this.#count;
  }

  /** The disk took so long for a synced write. */
  wrote(seconds: number): void {
    this.#writes[this.#nextWrite] = {
      endedMillis: this.#init.monotonicMillis(),
      millis: seconds * 1_000,
    };
    this.#nextWrite = (this.#nextWrite + 1) % WRITES_KEPT;
  }

  /** This node led the partition, and the entry is applied. */
  entryApplied(partition: number, timing: EntryTiming): void {
    const { queueMillis, commitMillis, applyMillis, sample, ...entry } = timing;
    const millis = queueMillis + commitMillis + applyMillis;
    if (millis < SLOW_MILLIS) return;
    this.#say(sample, 'a decision took long: where its time went on its leader', () => ({
      partition,
      ...entry,
      millis: Math.round(millis),
      queueMillis: Math.round(queueMillis),
      commitMillis: Math.round(commitMillis),
      writeMillis: Math.round(this.#slowestWriteSince(commitMillis + applyMillis)),
      applyMillis: Math.round(applyMillis),
    }));
  }

  /** A door of this node gave this answer after so long, whoever decided. @param told its place, as far as it is known here */
  answered(
    request: Question,
    answer: AskAnswer,
    told: { readonly millis: number; readonly partition?: number; readonly leader?: number },
  ): void {
    if (told.millis < SLOW_MILLIS) return;
    this.#say(request, 'an answer took long: from the door until there', () => ({
      ...told,
      millis: Math.round(told.millis),
      ...(answer.kind === 'decision'
        ? { term: answer.decision.decided.term, index: answer.decision.decided.index }
        : { answer: answer.kind === 'unavailable' ? answer.reason : answer.kind }),
    }));
  }

  #slowestWriteSince(millis: number): number {
    const since = this.#init.monotonicMillis() - millis;
    const meanwhile = this.#writes.filter(({ endedMillis }) => endedMillis >= since);
    return Math.max(0, ...meanwhile.map((write) => write.millis));
  }

  #say(request: UserRequest | Question, message: string, fields: () => object): void {
    const { logger, monotonicMillis } = this.#init;
    this.#count += 1;
    const now = monotonicMillis();
    if (now - this.#lineMillis < LINE_MILLIS) {
      this.#unsaid += 1;
      return;
    }
    this.#lineMillis = now;
    // Others like it, of which nothing was said.
    const more = this.#unsaid === 0 ? {} : { unsaid: this.#unsaid };
    this.#unsaid = 0;
    logger.warn({ ...fields(), request: digestOf(request), ...more }, message);
  }
}

/** Who knows the request can compare it; nobody can read it. */
function digestOf(request: UserRequest | Question): string {
  const said =
    'descriptors' in request
      ? [...request.descriptors]
      : [request.userId, 'requestId' in request && request.requestId];
  return createHash('sha256').update(JSON.stringify(said)).digest('hex').slice(0, DIGEST_CHARACTERS);
}
