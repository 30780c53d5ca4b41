/**
 * Remembers the customer records that this node has seen, so that it can match requests by tier. An entry may be
 * out of date. So each request carries the record version it was matched with, and the partition of the customer
 * refuses another version.
 */
import type { CustomerRecord } from '../api/customer-record.ts';
import type { Question } from '../api/question.ts';
import { keyText } from '../api/key-text.ts';

/** The descriptor that names the customer. */
export const CUSTOMER = 'customer';
/** The descriptor that the tier of a record replaces. */
const TIER = 'tier';
/** The maximum number of records that are remembered. One more evicts the least recently used one. */
export const CUSTOMERS_MAX = 65_536;

/** A customer as this node knows it. Version 0 without a tier: no record is known. */
export interface KnownCustomer extends Pick<CustomerRecord, 'version' | 'tier' | 'isBlocked'> {
  /** Key of the record, and of rules that count by customer alone, such as `customer=acme`. */
  readonly key: string;
}

/** The key of a customer; undefined if the id is too long for a key. Such a customer has no record. */
export function customerKey(customerId: string): string | undefined {
  return keyText([[CUSTOMER, customerId]]);
}

/** An LRU cache of customer records by key. */
export class CustomerCache {
  /** Customers with a record, by key; least recently used first. */
  readonly #known = new Map<string, KnownCustomer>();

  get size(): number {
    return this.#known.size;
  }

  /** The customer that a request names; undefined if it names none. */
  of({ descriptors }: Pick<Question, 'descriptors'>): KnownCustomer | undefined {
    const id = descriptors.get(CUSTOMER) ?? '';
    const key = id === '' ? undefined : customerKey(id);
    if (key === undefined) return undefined;
    const known = this.#known.get(key);
    if (known === undefined) return { key, version: 0, isBlocked: false };
    this.#known.delete(key);
    this.#known.set(key, known);
    return known;
  }

  /**
   * Updates a known record if the version is the same. The end of a block changes no version, only `isBlocked` of
   * the record as it is read.
   */
  confirm(key: string, record: CustomerRecord): void {
    if (this.#known.get(key)?.version === record.version) this.learn(key, record);
  }

  /** Stores what a partition answered about a record. Version 0 (no record) removes the entry. */
  learn(key: string, { version, tier, isBlocked }: CustomerRecord): void {
    this.#known.delete(key);
    if (version === 0) return;
    this.#known.set(key, { key, version, ...(tier !== undefined && { tier }), isBlocked });
    if (this.#known.size <= CUSTOMERS_MAX) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** The request as it is matched: the tier in the customer's record replaces the one in the request. */
export function asOf(request: Question, customer: KnownCustomer | undefined): Question {
  if (customer?.tier === undefined) return request;
  return { ...request, descriptors: new Map(request.descriptors).set(TIER, customer.tier) };
}
