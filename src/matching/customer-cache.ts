/**
 * What this node has seen of customers: enough to match their requests. It may be of before: whoever relies on it says by which
 * version, and the partition of the customer refuses what was matched with another.
 */
import type { CustomerRecord } from '../api/customer-record.ts';
import type { Question } from '../api/question.ts';
import { keyText } from '../api/key-text.ts';

/** The descriptor that names a customer, and the one that a record takes the place of. */
export const CUSTOMER = 'customer';
const TIER = 'tier';
/** Customers with a record that are remembered; one more takes the place of the one that was asked for longest ago. */
export const CUSTOMERS_MAX = 65_536;

/** Of a customer that nobody heard of: version 0, no tier. */
export interface KnownCustomer extends Pick<CustomerRecord, 'version' | 'tier' | 'isBlocked'> {
  /** Of its record, and of what rules count by customer alone. */
  readonly key: string;
}

/** Undefined where it is too long for a key: then nothing is said of it. */
export function customerKey(customerId: string): string | undefined {
  return keyText([[CUSTOMER, customerId]]);
}

export class CustomerCache {
  /** By key, those with a record. Those that were asked for longest ago come first. */
  readonly #known = new Map<string, KnownCustomer>();

  get size(): number {
    return this.#known.size;
  }

  /** Whose request it is; undefined: of no customer. */
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

  /** A block that has ended changes no version: only another look at the record tells. */
  confirm(key: string, record: CustomerRecord): void {
    if (this.#known.get(key)?.version === record.version) this.learn(key, record);
  }

  learn(key: string, { version, tier, isBlocked }: CustomerRecord): void {
    this.#known.delete(key);
    if (version === 0) return;
    this.#known.set(key, { key, version, ...(tier !== undefined && { tier }), isBlocked });
    if (this.#known.size <= CUSTOMERS_MAX) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** As it is matched: the tier of the record wins over what the request says. */
export function asOf(request: Question, customer: KnownCustomer | undefined): Question {
  if (customer?.tier === undefined) return request;
  return { ...request, descriptors: new Map(request.descriptors).set(TIER, customer.tier) };
}
