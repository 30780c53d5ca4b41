/**
 * Logs slow decisions and where their time went. The lines are few in any case, and contain no user id. It only
 * uses times that are measured anyway; a decision that is not slow costs a comparison.
 *
 * The leader logs an entry: time in the queue, to commit and to apply, and the slowest disk write meanwhile. The
 * node with the listener logs the answer. Partition, term and index connect the two lines.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import { createHash } from 'node:crypto';
import type { AskAnswer, Question } from '../api/question.ts';
import type { UserRequest } from '../api/user-request.ts';
import type { EntryTiming } from '../partition/entry-timing.ts';

/** What `SlowDecisions` needs. */
export interface SlowDecisionsInit extends MonotonicClock {
  readonly logger: { warn(fields: object, message: string): void };
}

/** From this on a decision is slow; far above what it takes on a working disk and network. */
export const SLOW_MILLIS = 100;
/** Least time between two lines. */
export const LINE_MILLIS = 10_000;
/** Number of writes that are remembered; a slow entry waited for the last few at most. */
const WRITES_KEPT = 16;
const DIGEST_CHARACTERS = 16;

interface Write {
  readonly endedMillis: number;
  readonly millis: number;
}

/** The slow decisions of one node. */
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

  /** Records the time of a synced write. */
  wrote(seconds: number): void {
    this.#writes[this.#nextWrite] = {
      endedMillis: this.#init.monotonicMillis(),
      millis: seconds * 1_000,
    };
    this.#nextWrite = (this.#nextWrite + 1) % WRITES_KEPT;
  }

  /** Records an entry of a partition that this node leads. */
  entryApplied(partition: number, timing: EntryTiming): void {
    const { queueMillis, commitMillis, applyMillis, sample, ...entry } = timing;
    const millis = queueMillis + commitMillis + applyMillis;
    if (millis < SLOW_MILLIS) return;
    this.#log(sample, 'slow decision: where its time went on its leader', () => ({
      partition,
      ...entry,
      millis: Math.round(millis),
      queueMillis: Math.round(queueMillis),
      commitMillis: Math.round(commitMillis),
      writeMillis: Math.round(this.#slowestWriteSince(commitMillis + applyMillis)),
      applyMillis: Math.round(applyMillis),
    }));
  }

  /**
   * Records an answer of a listener of this node. @param timing how long it took, and its partition as far as known
   */
  answered(
    request: Question,
    answer: AskAnswer,
    timing: { readonly millis: number; readonly partition?: number; readonly leader?: number },
  ): void {
    if (timing.millis < SLOW_MILLIS) return;
    this.#log(request, 'slow answer: time from reading the request to answering it', () => ({
      ...timing,
      millis: Math.round(timing.millis),
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

  #log(request: UserRequest | Question, message: string, fields: () => object): void {
    const { logger, monotonicMillis } = this.#init;
    this.#count += 1;
    const now = monotonicMillis();
    if (now - this.#lineMillis < LINE_MILLIS) {
      this.#unsaid += 1;
      return;
    }
    this.#lineMillis = now;
    // Number of slow decisions without a line since the last one.
    const more = this.#unsaid === 0 ? {} : { unsaid: this.#unsaid };
    this.#unsaid = 0;
    logger.warn({ ...fields(), request: digestOf(request), ...more }, message);
  }
}

/** Somebody who knows the request can compute the same digest; nobody can read the request from it. */
function digestOf(request: UserRequest | Question): string {
  const said =
    'descriptors' in request
      ? [...request.descriptors]
      : [request.userId, 'requestId' in request && request.requestId];
  return createHash('sha256').update(JSON.stringify(said)).digest('hex').slice(0, DIGEST_CHARACTERS);
}
