/** The limits of a described request, by partition, from a document and the record of its customer. */
import type { Descriptors } from '../../src/api/descriptors.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { AskAnswer } from '../../src/api/question.ts';
import type { PeekRequest } from '../../src/api/peek.ts';
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import { type Asking, wordsOfAsking } from './described-rounds.ts';
import { type ExpectedLimit, expectedLimits, type RulesDocument } from './documents.ts';
import { check } from './story.ts';

/** The key that operators use; undefined: the request has no customer. */
export function customerKeyOf(descriptors: Descriptors): string | undefined {
  const id = descriptors.get('customer');
  return id === undefined ? undefined : `customer=${id}`;
}

export class DescribedLimits {
  readonly documents: readonly RulesDocument[];
  readonly #partitionOf: (userId: string) => number;

  constructor(documents: readonly RulesDocument[], partitionOf: (userId: string) => number) {
    this.documents = documents;
    this.#partitionOf = partitionOf;
  }

  /** The tier in the record replaces the tier in the request. */
  of(
    { request: { descriptors, cost = 1 } }: Asking,
    version: number,
    {
      record = NO_RECORD,
      isShadowed = false,
    }: { readonly record?: CustomerRecord | undefined; readonly isShadowed?: boolean },
  ): readonly ExpectedLimit[] {
    const document = this.documents.find((one) => one.version === version);
    check(document !== undefined, () => `there is no document of version ${version}`);
    const { tier } = record;
    const known = tier === undefined ? descriptors : new Map([...descriptors, ['tier', tier]]);
    return expectedLimits(document, known, cost, isShadowed);
  }

  /**
   * Checks the answer that no rule limits the request. The rules behind it must be no older than those known to be in
   * force before the request came.
   */
  mustHaveNone(
    asking: Asking,
    { kind, rulesVersion }: Extract<AskAnswer, { kind: 'unlimited' | 'unmatched' }>,
  ): void {
    const words = (): string => `${wordsOfAsking(asking)} is ${kind} by rules ${rulesVersion}`;
    check(rulesVersion >= asking.rulesAtLeast, () => `${words()}, which are too old`);
    const record = asking.confirmed;
    check(this.of(asking, rulesVersion, { record }).length === 0, () => `${words()}, which have a limit`);
    const isShadowed = this.of(asking, rulesVersion, { record, isShadowed: true }).length > 0;
    const denies = this.documents.some((one) => one.version === rulesVersion && one.deniesUnmatched);
    check((kind === 'unmatched') === (denies && !isShadowed), words);
  }

  /**
   * By partition. The partition asked last comes first: that of the customer, else that of the key with the lowest
   * place (`placeOf`). In each partition that key comes first, except for the customer's own.
   */
  partsOfRequest(
    asking: Asking,
    version: number,
    record: CustomerRecord | undefined,
  ): readonly (readonly ExpectedLimit[])[] {
    const parts = new Map<number, ExpectedLimit[]>();
    const limits = this.of(asking, version, { record });
    const places = limits.map(placeOf).toSorted();
    const inFront = limits.find((limit) => placeOf(limit) === places[0]);
    const first = inFront === undefined ? -1 : this.#partitionOf(inFront.userId);
    const inOrder = limits.toSorted(
      (a, b) => Number(this.#partitionOf(b.userId) === first) - Number(this.#partitionOf(a.userId) === first),
    );
    for (const limit of inOrder) {
      const partition = this.#partitionOf(limit.userId);
      parts.set(partition, [...(parts.get(partition) ?? []), limit]);
    }
    for (const [partition, some] of parts) {
      const [place] = some.map(placeOf).toSorted();
      const front = some.find((limit) => placeOf(limit) === place);
      parts.set(
        partition,
        some.toSorted((a, b) => Number(b === front) - Number(a === front)),
      );
    }
    const { customer } = asking;
    const own = customer === undefined ? undefined : this.#partitionOf(customer.key);
    const ordered = [...parts].toSorted(([a], [b]) => Number(b === own) - Number(a === own));
    const isOwn = ({ userId }: ExpectedLimit): number => Number(userId === customer?.key);
    return ordered.map(([partition, limits]) =>
      partition === own ? limits.toSorted((a, b) => isOwn(b) - isOwn(a)) : limits,
    );
  }

  /** By some document, with any record of its customer. */
  hasLimit(asking: Asking, { userId, ruleId, cost, timestampMillis }: PeekRequest): boolean {
    const { customer, confirmed, request, rounds } = asking;
    const records = [undefined, confirmed, customer?.known(), ...rounds.map(({ record }) => record)];
    const isLimit = (limit: ExpectedLimit): boolean =>
      limit.userId === userId && limit.ruleId === ruleId && limit.cost === cost;
    return (
      request.timestampMillis === timestampMillis &&
      this.documents.some(({ version }) =>
        records.some((record) => this.of(asking, version, { record }).some(isLimit)),
      )
    );
  }

  /** The record of its customer is in the same partition as these. */
  isOwn({ customer }: Asking, [first]: readonly ExpectedLimit[]): boolean {
    return (
      customer !== undefined &&
      first !== undefined &&
      this.#partitionOf(first.userId) === this.#partitionOf(customer.key)
    );
  }
}

/** The first in the order of these texts keeps the id of a request. */
function placeOf({ userId }: ExpectedLimit): string {
  const parts = userId.split(',');
  const namesUser = parts.some((part) => part.startsWith('user='));
  return `${namesUser ? Math.min(parts.length, 2) : 3} ${userId}`;
}

/** Equal for tables with the same rules, in any version. */
export function wordsOfRules({ rules }: RuleTable): string {
  return JSON.stringify(
    rules.map(({ id, of, limit, windowMillis, clock, meter = 'slidingLog' }) => {
      return [id, of, limit, windowMillis, clock, meter];
    }),
  );
}
