/**
 * A described request with an id is granted once as long as the id is remembered, even if rules change: every reported
 * grant under the id has the receipt of the first one. A customer's tier may lead a retry to another partition, and a
 * refund frees the id; such requests are skipped.
 */
import type { Decision } from '../../src/api/answer.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { type Asking, wordsOfAsking } from './described-rounds.ts';
import { check } from './story.ts';

interface Asked {
  /** Nothing was granted under the id before. */
  readonly sinceMillis: number;
  granted: { readonly receipt: string; readonly rulesVersion: number } | undefined;
}

export class DescribedReceipts {
  readonly #horizonMillis: number;
  readonly #asked = new Map<string, Asked>();

  constructor(tables: readonly RuleTable[]) {
    // For a grant by any of the tables, by clocks that may run a little fast.
    this.#horizonMillis =
      0.95 * Math.min(...tables.map(({ requestIdHorizonMillis }) => requestIdHorizonMillis));
  }

  /** A node asks for the grant. From now on it may be made, whichever attempt gets the answer. */
  asked(asking: Asking, now: number): void {
    const words = wordsOf(asking);
    if (words !== undefined && !this.#asked.has(words))
      this.#asked.set(words, { sinceMillis: now, granted: undefined });
  }

  /** A client gets a grant now. */
  granted(asking: Asking, { decided, rulesVersion }: Decision, now: number): void {
    const words = wordsOf(asking);
    if (words === undefined) return;
    const asked = this.#asked.get(words);
    check(asked !== undefined, () => `${wordsOfAsking(asking)} is granted, but no node asked for it`);
    const granted = { receipt: JSON.stringify(decided), rulesVersion };
    const before = (asked.granted ??= granted);
    if (before.receipt === granted.receipt) return;
    const forgottenMillis = asked.sinceMillis + this.#horizonMillis;
    check(
      now > forgottenMillis,
      () =>
        `${wordsOfAsking(asking)} is granted at ${granted.receipt}, ` +
        `but was before at ${before.receipt} by rules ${before.rulesVersion}`,
    );
    this.#asked.set(words, { sinceMillis: forgottenMillis, granted });
  }
}

/** Users take each other's ids, and use their own for other requests. Undefined: the request is skipped. */
function wordsOf({ request, customer }: Asking): string | undefined {
  const { descriptors, requestId, cost, timestampMillis } = request;
  if (requestId === undefined || customer !== undefined) return undefined;
  return JSON.stringify([
    [...descriptors].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    requestId,
    cost,
    timestampMillis,
  ]);
}
