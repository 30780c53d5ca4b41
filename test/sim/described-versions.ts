/**
 * The rule versions that found the limits of described requests: no log charges a limit by another version than the one
 * that found it.
 */
import type { AllowRequest } from '../../src/api/request.ts';
import { type Asked, askedBy, wordsOf } from './id-ledger.ts';
import { check } from './story.ts';

export class DescribedVersions {
  /** Keyed by the fields of the question that a log shows. */
  readonly #foundBy = new Map<string, Set<number>>();

  /** A node asks this. Returns the version of the rules that found it. */
  asked(request: AllowRequest): number {
    const { matchedBy = 0, userId } = request;
    check(matchedBy > 0, () => `${userId} is asked for without the version of the rules`);
    const words = wordsOf(askedBy(request));
    this.#foundBy.set(words, (this.#foundBy.get(words) ?? new Set()).add(matchedBy));
    return matchedBy;
  }

  /** A log charges this, by the rules of `version`. */
  charged(asked: Asked, version: number): void {
    const versions = this.#foundBy.get(wordsOf(asked));
    check(
      versions === undefined || versions.has(version),
      () => `${wordsOf(asked)}, found by rules ${[...(versions ?? [])].join()}, is granted by ${version}`,
    );
  }
}
