/**
 * Described requests of customers, held to what operators said of those: whatever answers one was so at some time since it was asked.
 */
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import type { CustomerLedger } from './customer-ledger.ts';
import type { DescribedLimits } from './described-limits.ts';
import { type Asking, wordsOfAsking } from './described-rounds.ts';
import { check } from './story.ts';

export class DescribedCustomers {
  readonly #ledger: CustomerLedger;
  readonly #limits: DescribedLimits;

  constructor(ledger: CustomerLedger, limits: DescribedLimits) {
    this.#ledger = ledger;
    this.#limits = limits;
  }

  /** All records that its customer ever had; none, if the request is of nobody. */
  recordsOf({ customer }: Asking): readonly CustomerRecord[] {
    return customer === undefined ? [NO_RECORD] : this.#ledger.recordsSince(customer.key, -Infinity);
  }

  /** What a request is granted by was so at some time since it was asked, in one of the attempts to ask it. */
  mustBeInPlace(
    attempts: readonly { readonly asking: Asking; readonly record: CustomerRecord | undefined }[],
  ): void {
    const isInPlace = attempts.some(
      ({ asking: { customer, askedAt }, record }) =>
        customer === undefined ||
        this.#ledger.recordsSince(customer.key, askedAt).some(({ version }) => version === record?.version),
    );
    check(isInPlace, () => {
      const words = attempts.map((one) => `${wordsOfAsking(one.asking)} by ${JSON.stringify(one.record)}`);
      return `answered by a record of before: ${words.join('; ')}`;
    });
  }

  /** It is under the limit that denies it, by some record that was so since it was asked. */
  mustBeUnder(asking: Asking, version: number, denying: string): void {
    const { customer, askedAt } = asking;
    if (customer === undefined) return;
    const isUnder = this.#ledger
      .recordsSince(customer.key, askedAt)
      .some((record) =>
        this.#limits.of(asking, version, { record }).some(({ ruleId }) => ruleId === denying),
      );
    check(isUnder, () => `${wordsOfAsking(asking)} is denied by ${denying}, for a tier of before`);
  }
}
