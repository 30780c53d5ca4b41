/**
 * Follows from outside which customer records each process knows: from operators, from records that it read, and from
 * partitions that refused it because of another record. The log must agree.
 */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { CustomerAnswer, CustomerRequest } from '../../src/api/customer.ts';
import { type CustomerRecord, NO_RECORD } from '../../src/api/customer-record.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { ClientWorld } from './client-world.ts';
import { type Asking, recheckedRecord, wordsOfAsking } from './described-rounds.ts';
import { blockWaitAt } from './naive-record.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

interface Seen {
  readonly record: CustomerRecord;
  readonly at: number;
}

export class CustomerWatch {
  readonly #world: ClientWorld;
  /** By process and key: the records that it has seen, and when. The last one is what it knows. */
  readonly #known = new Map<string, Map<string, readonly Seen[]>>();

  constructor(world: ClientWorld) {
    this.#world = world;
  }

  known(node: SimNode, key: string): CustomerRecord {
    return this.#knownBy(node).get(key)?.at(-1)?.record ?? NO_RECORD;
  }

  /** @param askedAt when a client asked for this customer */
  of(node: SimNode, key: string | undefined, askedAt: number): Asking['customer'] {
    if (key === undefined) return undefined;
    return {
      key,
      known: () => this.known(node, key),
      wentBy: (partition, index) => this.#wentBy(node, key, { partition, index, askedAt }),
    };
  }

  /**
   * The record it used when it denied by the state after entry `index`: known at some time since `askedAt`, and it may
   * have learned more since.
   */
  #wentBy(
    node: SimNode,
    key: string,
    {
      partition,
      index,
      askedAt,
    }: { readonly partition: number; readonly index: number; readonly askedAt: number },
  ): CustomerRecord {
    const seen = this.#knownBy(node).get(key) ?? [];
    const inForce = this.#world.limits.recordAt(groupOfPartition(partition), index, key);
    const known = seen.filter((_, i) => (seen[i + 1]?.at ?? Infinity) >= askedAt);
    return known.find(({ record }) => record.version === inForce.version)?.record ?? this.known(node, key);
  }

  #knownBy({ id, life }: SimNode): Map<string, readonly Seen[]> {
    const process = `${id}/${life}`;
    const known = this.#known.get(process) ?? new Map<string, readonly Seen[]>();
    this.#known.set(process, known);
    return known;
  }

  #learn(node: SimNode, key: string, record: CustomerRecord): void {
    const known = this.#knownBy(node);
    known.set(key, [...(known.get(key) ?? []), { record, at: this.#world.now() }]);
  }

  /** A node knows the changes that it confirmed to operators. */
  learning(node: SimNode, { userId }: CustomerRequest): (answer: CustomerAnswer) => void {
    const { life } = node;
    return (answer) => {
      if (answer.kind === 'customer' && node.life === life) this.#learn(node, userId, answer.outcome.record);
    };
  }

  /** The node of `asking` reads the record of its customer. */
  reading(
    asking: Asking,
    { userId, action }: CustomerRequest,
  ): (answer: CustomerAnswer, partition: number) => void {
    const { now, limits, story } = this.#world;
    const { node, life } = asking;
    const askedAt = now();
    const before = recheckedRecord(asking) ?? this.known(node, userId);
    asking.confirmed = undefined;
    asking.blockedMillis = undefined;
    return (answer, partition) => {
      if (node.life !== life || !node.isUp) return;
      story.seen(`customer read: ${answer.kind}`);
      story.report(
        () => `node ${node.id} reads ${userId} for ${wordsOfAsking(asking)}: ${JSON.stringify(answer)}`,
      );
      if (answer.kind !== 'customer') return;
      const { outcome } = answer;
      limits.customers.reported(groupOfPartition(partition), { userId, type: action.type }, outcome, askedAt);
      const { record, decided } = outcome;
      const wait = blockWaitAt(record, decided.timeMillis);
      if (record.version !== before.version) this.#learn(node, userId, record);
      else if (wait !== undefined) asking.blockedMillis = wait;
      else asking.confirmed = record;
      // A block that ends does not change the version.
      if (record.version === this.known(node, userId).version) this.#learn(node, userId, record);
      if (before.isBlocked && asking.confirmed === record)
        story.seen('customer not blocked any more, by time');
    };
  }

  /** The node of `asking` gets a partition's answer about its limits. */
  heard({ node, customer }: Asking, answer: AllowAnswer, partition: number): void {
    const { limits, story } = this.#world;
    const key = customer?.key ?? '';
    if (answer.kind === 'unavailable' && !answer.proposed && answer.record !== undefined) {
      const { record } = answer;
      const isKnown = limits.customers
        .recordsSince(key, -Infinity)
        .some(({ version }) => version === record.version);
      check(isKnown, () => `${key} never had this record: ${JSON.stringify(record)}`);
      this.#learn(node, key, record);
      story.seen('customer changed under way');
    }
    if (answer.kind !== 'decision' || customer === undefined) return;
    const { allowed, ruleId, decided, isBlocked } = answer.decision;
    if (isBlocked === true) story.seen('customer blocked');
    const { overrides } = limits.recordAt(groupOfPartition(partition), decided.index, key);
    if (overrides.some((one) => one.ruleId === ruleId))
      story.seen(`customer ${allowed ? 'granted' : 'denied'} by a limit of its own`);
  }
}
