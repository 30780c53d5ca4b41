/**
 * A described request with an id is granted once as long as that is remembered, whatever rules come and go meanwhile: every grant that
 * is told under the id has the receipt of the first one. The tier of a customer may lead a retry elsewhere, and a refund frees the id's
 * grant: such requests are not looked at.
 */
import type { Decision } from '../../src/api/answer.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { type Asking, wordsOfAsking } from './described-rounds.ts';
import { check } from './story.ts';

interface Granted {
  readonly receipt: string;
  readonly askedAt: number;
  readonly rulesVersion: number;
}

export class DescribedReceipts {
  readonly #horizonMillis: number;
  readonly #granted = new Map<string, Granted>();

  constructor(tables: readonly RuleTable[]) {
    // Of a grant by any of them, by clocks that may run a little fast.
    this.#horizonMillis =
      0.95 * Math.min(...tables.map(({ requestIdHorizonMillis }) => requestIdHorizonMillis));
  }

  /** A client is told a grant now. */
  granted(asking: Asking, { decided, rulesVersion }: Decision, now: number): void {
    const { descriptors, requestId, cost, timestampMillis } = asking.request;
    if (requestId === undefined || asking.customer !== undefined) return;
    // Users take each other's ids, and use their own for other requests.
    const request = JSON.stringify([[...descriptors].toSorted(), requestId, cost, timestampMillis]);
    const receipt = JSON.stringify(decided);
    const before = this.#granted.get(request);
    if (before?.receipt === receipt) return;
    if (before === undefined || now > before.askedAt + this.#horizonMillis) {
      this.#granted.set(request, { receipt, askedAt: asking.askedAt, rulesVersion });
      return;
    }
    check(
      false,
      () =>
        `${wordsOfAsking(asking)} is granted at ${receipt}, and was at ${before.receipt} by rules ${before.rulesVersion}`,
    );
  }
}
