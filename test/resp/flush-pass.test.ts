import { describe, expect, it, vi } from 'vitest';
import type { AskAnswer } from '../../src/api/question.ts';
import { AnswerQueue, type Place } from '../../src/resp/answer-queue.ts';
import { type Flushable, FlushPass, HOLD_MILLIS_MAX } from '../../src/resp/flush-pass.ts';
import type { ReplyWriter } from '../../src/resp/reply-writer.ts';
import { decisionOf } from '../api/decision-of.ts';

const ANSWER: AskAnswer = { kind: 'decision', decision: decisionOf() };

/** A connection without a socket: what it sends, write by write, as the numbers of its commands. */
class PlayedConnection implements Flushable {
  readonly writes: number[][] = [];
  readonly #queue = new AnswerQueue();
  readonly #pass: FlushPass;
  #write: number[] = [];

  constructor(pass: FlushPass) {
    this.#pass = pass;
  }

  get isGroupReady(): boolean {
    return this.#queue.isGroupReady;
  }

  /** Reads commands `first` to `last` at once; the function answers one of them. */
  read(first: number, last: number): (command: number) => void {
    this.#queue.beginGroup();
    const places = new Map<number, Place>();
    for (let command = first; command <= last; command += 1)
      places.set(
        command,
        this.#queue.reserve(() => this.#write.push(command), 1),
      );
    return (command) => {
      this.#queue.settle(places.get(command)!, ANSWER);
      if (this.#queue.isReady) this.#pass.mark(this);
    };
  }

  flush(writer: ReplyWriter): void {
    this.#queue.drainTo(writer);
    if (this.#write.length > 0) this.writes.push(this.#write);
    this.#write = [];
  }
}

class PlayedTurns {
  nowMillis = 0;
  #ends: (() => void)[] = [];
  readonly pass = new FlushPass({
    monotonicMillis: () => this.nowMillis,
    atTurnEnd: (flush) => void this.#ends.push(flush),
  });
  readonly connection = new PlayedConnection(this.pass);

  end(): void {
    for (const flush of this.#ends.splice(0)) flush();
  }
}

describe('answers to commands that were read at once', () => {
  it('leave in one write, in whichever turns they come', () => {
    const turns = new PlayedTurns();
    const answer = turns.connection.read(1, 3);
    for (const command of [1, 3, 2]) {
      expect(turns.connection.writes).toEqual([]);
      answer(command);
      turns.end();
    }
    expect(turns.connection.writes).toEqual([[1, 2, 3]]);
  });

  it('do not wait for commands that were read later', () => {
    const turns = new PlayedTurns();
    const answer = turns.connection.read(1, 2);
    turns.connection.read(3, 4);
    answer(1);
    answer(2);
    turns.end();
    expect(turns.connection.writes).toEqual([[1, 2]]);
  });

  it('wait for each other no longer than they may, also if nothing else happens', () => {
    vi.useFakeTimers();
    try {
      const turns = new PlayedTurns();
      const answer = turns.connection.read(1, 3);
      answer(1);
      turns.end();
      turns.nowMillis += HOLD_MILLIS_MAX - 1;
      answer(2);
      turns.end();
      expect(turns.connection.writes).toEqual([]);
      turns.nowMillis += 1;
      vi.advanceTimersByTime(HOLD_MILLIS_MAX);
      turns.end();
      expect(turns.connection.writes).toEqual([[1, 2]]);
      answer(3);
      turns.end();
      expect(turns.connection.writes).toEqual([[1, 2], [3]]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('of many commands do not wait for the last of them', () => {
    const turns = new PlayedTurns();
    const answer = turns.connection.read(1, 200);
    for (let command = 1; command <= 100; command += 1) answer(command);
    turns.end();
    expect(turns.connection.writes.map((write) => write.length)).toEqual([100]);
  });
});
