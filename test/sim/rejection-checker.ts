/**
 * Rejections leave no trace: what a client was told is denied, invalid, in conflict with another request, or nowhere, is
 * charged to nobody, then or later. It knows what clients asked and were told, and what the log charged, and nothing of
 * how a request gets there.
 *
 * A request with an id may be asked again, and an earlier attempt whose outcome nobody knows may still be granted. So a
 * charge is a trace of a rejection only if every attempt that could have made it, because it began before the leader
 * stamped the entry, was rejected. Without an id two requests may read the same, and each makes one charge at most: of
 * those that began before it there must be at least as many that were not rejected as there are charges.
 */
import { type Asked, wordsOf } from './id-ledger.ts';
import { check } from './story.ts';

/** One request of a client to one node. What nobody was told about it may be anything. */
export interface Try {
  readonly asked: Asked;
  readonly begunMillis: number;
  isRejected: boolean;
}

interface Charge {
  readonly stampedMillis: number;
  readonly where: string;
}

/** All that reads the same, oldest first. */
interface Account {
  readonly tries: Try[];
  readonly charges: Charge[];
}

export class RejectionChecker {
  readonly #accounts = new Map<string, Account>();

  /** In real time, like all times here. */
  begun(asked: Asked, begunMillis: number): Try {
    const begun = { asked, begunMillis, isRejected: false };
    this.#accountOf(asked).tries.push(begun);
    return begun;
  }

  rejected(attempt: Try): void {
    attempt.isRejected = true;
    this.#check(attempt.asked);
  }

  /** The first attempt that reads so and was not rejected: a grant of `attempt` may be that one's. */
  firstLike(attempt: Try): Try {
    return this.#accountOf(attempt.asked).tries.find(({ isRejected }) => !isRejected) ?? attempt;
  }

  /** The log charges what reads so; its leader wrote it down at `stampedMillis`. */
  charged(asked: Asked, charge: Charge): void {
    this.#accountOf(asked).charges.push(charge);
    this.#check(asked);
  }

  #accountOf(asked: Asked): Account {
    const words = wordsOf(asked);
    let account = this.#accounts.get(words);
    if (account === undefined) {
      account = { tries: [], charges: [] };
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
