/**
 * Described requests of customers, held to what operators said of those: whatever answers one was so at some time since it was asked.
 */
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer.ts';
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

  /** What a request is granted by, which is one of these, was so at some time since it was asked. */
  mustBeInPlace(asking: Asking, ...records: readonly (CustomerRecord | undefined)[]): void {
    const { customer, askedAt } = asking;
    if (customer === undefined) return;
    const inPlace = this.#ledger.recordsSince(customer.key, askedAt);
    check(
      inPlace.some(({ version }) => records.some((record) => version === record?.version)),
      () => `${wordsOfAsking(asking)} is answered by a record of before: ${JSON.stringify(records)}`,
    );
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
