/**
 * Checks described requests of customers against the operators' records: the record behind an answer was in force at
 * some time since the request.
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

  /** All records that its customer ever had; none if the request has no customer. */
  recordsOf({ customer }: Asking): readonly CustomerRecord[] {
    return customer === undefined ? [NO_RECORD] : this.#ledger.recordsSince(customer.key, -Infinity);
  }

  /** The record behind a grant was in force at some time since one of the attempts began. */
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
      return `answered by an old record: ${words.join('; ')}`;
    });
  }

  /** The limit that denies the request applies to it, by some record in force since it was asked. */
  mustBeUnder(asking: Asking, version: number, denying: string): void {
    const { customer, askedAt } = asking;
    if (customer === undefined) return;
    const isUnder = this.#ledger
      .recordsSince(customer.key, askedAt)
      .some((record) =>
        this.#limits.of(asking, version, { record }).some(({ ruleId }) => ruleId === denying),
      );
    check(isUnder, () => `${wordsOfAsking(asking)} is denied by ${denying}, which is for another tier`);
  }
}
