/**
 * Rejections leave no trace: a request that was answered as denied, invalid, conflicting or not proposed is never
 * charged. The check knows the requests and answers of clients and the charges of the log, but not how a request gets
 * there.
 *
 * A request with an id may be repeated, and an earlier attempt with an unknown outcome may still be granted. So a
 * charge breaks the rule only if every attempt that could have made it, because it began before the leader stamped the
 * entry, was rejected. Without an id two requests may be equal, and each makes one charge at most: among those that
 * began before it, at least as many must not be rejected as there are charges.
 */
import type { AllowAnswer } from '../../src/api/answer.ts';
import { type Asked, wordsOf } from './id-ledger.ts';
import { check } from './story.ts';

/** A request with this answer must not be charged. */
export function isRejection(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed;
    case 'unavailable':
      return !answer.proposed;
    case 'invalid':
    case 'conflict':
      return true;
  }
}

/** A request with this answer was never proposed, and never will be. */
export function isNowhere(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed && answer.decision.decided.position === undefined;
    case 'unavailable':
      // It may be in a log that did not count it.
      return !answer.proposed && answer.reason !== 'customer_changed';
    case 'invalid':
    case 'conflict':
      return false;
  }
}

/** One request of a client to one node. Without an answer its outcome is unknown. */
export interface Try {
  readonly asked: Asked;
  readonly begunMillis: number;
  isRejected: boolean;
  /** Its client got the answer that it was not proposed, so no log may hold it. */
  isNowhere: boolean;
}

interface Charge {
  readonly stampedMillis: number;
  readonly where: string;
}

/** All equal requests, oldest first. */
interface Account {
  readonly tries: Try[];
  readonly charges: Charge[];
  /** How many entries hold it, and when the last was stamped. */
  logged: number;
  loggedMillis: number;
  /** How many tries began before that, and how many of them were not reported as not proposed. */
  next: number;
  possible: number;
}

export class RejectionChecker {
  readonly #accounts = new Map<string, Account>();

  /** In real time, like all times here. */
  begun(asked: Asked, begunMillis: number): Try {
    const begun = { asked, begunMillis, isRejected: false, isNowhere: false };
    this.#accountOf(asked).tries.push(begun);
    return begun;
  }

  rejected(attempt: Try): void {
    attempt.isRejected = true;
    this.#check(attempt.asked);
  }

  nowhere(attempt: Try): void {
    attempt.isNowhere = true;
    if (attempt.asked.requestId !== undefined) return;
    const account = this.#accountOf(attempt.asked);
    if (account.tries.lastIndexOf(attempt) < account.next) account.possible -= 1;
    checkLogged(account, attempt.asked, 'some entry');
  }

  /**
   * The log holds an equal request: without an id no attempt is there twice, nor one that was reported as not proposed.
   */
  logged(asked: Asked, { stampedMillis, where }: Charge): void {
    const account = this.#accountOf(asked);
    account.logged += 1;
    const { tries, loggedMillis } = account;
    account.loggedMillis = Math.max(loggedMillis, stampedMillis);
    for (let begun = tries[account.next]; begun !== undefined; begun = tries[account.next]) {
      if (begun.begunMillis > account.loggedMillis) break;
      if (!begun.isNowhere) account.possible += 1;
      account.next += 1;
    }
    checkLogged(account, asked, where);
  }

  /** The first equal attempt that was not rejected: a grant of `attempt` may be that one's. */
  firstLike(attempt: Try): Try {
    return this.#accountOf(attempt.asked).tries.find(({ isRejected }) => !isRejected) ?? attempt;
  }

  /** The log charges an equal request; its leader stamped it at `stampedMillis`. */
  charged(asked: Asked, charge: Charge): void {
    this.#accountOf(asked).charges.push(charge);
    this.#check(asked);
  }

  #accountOf(asked: Asked): Account {
    const words = wordsOf(asked);
    let account = this.#accounts.get(words);
    if (account === undefined) {
      account = { tries: [], charges: [], logged: 0, loggedMillis: -Infinity, next: 0, possible: 0 };
      this.#accounts.set(words, account);
    }
    return account;
  }

  #check(asked: Asked): void {
    const { tries, charges } = this.#accountOf(asked);
    let possible = 0;
    let next = 0;
    for (const [i, { stampedMillis, where }] of charges.entries()) {
      for (let begun = tries[next]; begun !== undefined; begun = tries[next]) {
        if (begun.begunMillis > stampedMillis) break;
        if (!begun.isRejected) possible += 1;
        next += 1;
      }
      check(
        possible > (asked.requestId === undefined ? i : 0),
        () => `a rejected request is charged: ${wordsOf(asked)}, ${where}, ${next} attempts before it`,
      );
    }
  }
}

function checkLogged({ logged, possible }: Account, asked: Asked, where: string): void {
  check(
    asked.requestId !== undefined || logged <= possible,
    () => `in the log ${logged} times, but asked for ${possible} times: ${wordsOf(asked)}, ${where}`,
  );
}
