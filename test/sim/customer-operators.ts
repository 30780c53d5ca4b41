/**
 * Operators who change keys during faults, at any node: their own limits, a block, a reset, a used amount, sometimes
 * only for the version that they know. Each answer must be the result in the log, committed while the operator waited.
 */
import type { CustomerAction, CustomerAnswer, CustomerRequest } from '../../src/api/customer.ts';
import type { LimitOverride } from '../../src/api/customer-record.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { ClientWorld } from './client-world.ts';
import type { Clients } from './clients.ts';
import type { DescribedWatch } from './described-watch.ts';
import type { Random } from './random.ts';
import type { OperatorSettings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

const LIMITS = [0, 1, 2, 3, 5, 20, 60];
const BURSTS = [1, 5, 30];
/** The used amount, regardless of the rule's limit: some are above it. */
const USED = [0, 0, 1, 2, 5, 20];
const TIERS = [undefined, 'gold', 'free'];
/** Chance that an operator who knows a version names it. */
const FOR_VERSION = 0.4;
/** Blocks are brief, since a blocked key leaves little to check. */
const ACTIONS = [
  'read',
  'put',
  'put',
  'delete',
  'block',
  'unblock',
  'unblock',
  'reset',
  'reset',
  'set',
  'set',
] as const;
/** The duration of a block that ends. Some end before any request, some outlast a failover. */
const BLOCK_MILLIS = [1, 40, 300, 1_000, 3_000, 20_000];
const ENDS = 0.6;
/** A tick, and the answers a process still lets pass. */
const LATE_MILLIS_MAX = 25;

export interface CustomerOperatorsInit {
  readonly world: ClientWorld;
  readonly operators: OperatorSettings;
  readonly isActive: () => boolean;
  /** Since then there is no fault, and everything must be answered. */
  readonly mustDecideSince: () => number;
  /** A change of this key may change its grants. */
  readonly asking: (request: CustomerRequest) => void;
  /** Through the customer API of `node`; undefined: it has none. */
  readonly askCustomer?: (
    node: SimNode,
    customer: { readonly id: string; readonly action: CustomerAction },
    done: (answer: CustomerAnswer, partition: number) => void,
  ) => void;
}

interface Attempt {
  readonly node: SimNode;
  readonly request: CustomerRequest;
  readonly life: number;
  readonly askedAt: number;
  readonly arrivedMonotonic: number;
  isAnswered: boolean;
}

export class CustomerOperators {
  readonly #init: CustomerOperatorsInit;
  readonly #random: Random;
  /** By key: the last reported version. */
  readonly #versions = new Map<string, number>();
  readonly #open = new Set<Attempt>();

  constructor(init: CustomerOperatorsInit) {
    this.#init = init;
    this.#random = init.world.random.fork();
    this.#next();
  }

  #next(): void {
    const { world, operators, isActive } = this.#init;
    world.after(this.#random.exponential(operators.meanMillis), () => {
      const nodes = world.askable();
      if (isActive() && nodes.length > 0) this.#ask(this.#random.pick(nodes));
      this.#next();
    });
  }

  #ask(node: SimNode): void {
    const { world, operators, asking, askCustomer } = this.#init;
    const { keys, customers } = operators;
    const random = this.#random;
    const isCustomer = askCustomer !== undefined && customers.length > 0 && random.chance(0.8);
    const id = random.pick(isCustomer ? customers : keys);
    const userId = isCustomer ? `customer=${id}` : id;
    const action = this.#draw(userId, isCustomer ? operators.customerRules : operators.rules);
    const request: CustomerRequest = { ask: 'customer', userId, action };
    const attempt: Attempt = {
      node,
      request,
      life: node.life,
      askedAt: world.now(),
      arrivedMonotonic: node.monotonicMillis(),
      isAnswered: false,
    };
    asking(request);
    world.asks.concerns(node.id, userId);
    this.#open.add(attempt);
    world.story.step(8, node.id, 0);
    const done = (answer: CustomerAnswer, partition: number): void =>
      this.#answered(attempt, answer, partition);
    if (isCustomer) askCustomer(node, { id, action }, done);
    else node.ask(request, done);
  }

  #draw(userId: string, rules: readonly string[]): CustomerAction {
    const random = this.#random;
    const known = random.pick([0, this.#versions.get(userId) ?? 0]);
    const ifVersion = random.chance(FOR_VERSION) ? known : undefined;
    const type = random.pick(ACTIONS);
    switch (type) {
      case 'read':
      case 'reset':
        return { type };
      case 'set': {
        const [one, ...others] = rules.filter(() => random.chance(0.5));
        if (one === undefined) return { type: 'reset' };
        return { type, ruleIds: [one, ...others], used: random.pick(USED) };
      }
      case 'block':
        return { type, isBlocked: true, ...(random.chance(ENDS) && this.#end()) };
      case 'unblock':
        return { type: 'block', isBlocked: false };
      case 'delete':
        return { type, ifVersion };
      case 'put': {
        const isBlocked = random.pick([undefined, undefined, false, true]);
        const overrides = rules.filter(() => random.chance(0.5)).map((ruleId) => this.#override(ruleId));
        const end = isBlocked === true ? this.#end() : {};
        return { type, tier: random.pick(TIERS), overrides, isBlocked, ...end, ifVersion };
      }
    }
  }

  #end(): { readonly durationMillis: number } {
    return { durationMillis: this.#random.pick(BLOCK_MILLIS) };
  }

  #override(ruleId: string): LimitOverride {
    const random = this.#random;
    const isBucket = this.#init.operators.buckets.includes(ruleId);
    const limit = random.pick(LIMITS);
    return { ruleId, limit, ...(isBucket && random.chance(0.5) && { burst: random.pick(BURSTS) }) };
  }

  #answered(attempt: Attempt, answer: CustomerAnswer, partition: number): void {
    const { node, request, life, askedAt, arrivedMonotonic } = attempt;
    const { world, mustDecideSince } = this.#init;
    const { userId, action } = request;
    check(!attempt.isAnswered, () => `${JSON.stringify(request)} was answered twice`);
    attempt.isAnswered = true;
    this.#open.delete(attempt);
    if (node.life !== life || !node.isUp) return;
    const words = (): string => `${JSON.stringify(request)}: ${JSON.stringify(answer)}`;
    world.story.step(9, node.id, answer.kind === 'customer' && answer.outcome.isDone ? 1 : 0);
    world.story.report(() => `node ${node.id} answers ${words()}`);
    switch (answer.kind) {
      case 'customer': {
        const { outcome } = answer;
        const took = node.monotonicMillis() - arrivedMonotonic;
        const { requestDeadlineMillis } = world.settings.timing;
        check(
          took <= requestDeadlineMillis + LATE_MILLIS_MAX * Math.max(1, node.clock.rate),
          () => `an operator was answered after ${took} ms, past its deadline: ${words()}`,
        );
        const said = { userId, type: action.type };
        world.limits.customers.reported(groupOfPartition(partition), said, outcome, askedAt);
        this.#versions.set(userId, outcome.record.version);
        world.story.seen(`customer ${action.type}${outcome.isDone ? '' : ' for another version'}`);
        return;
      }
      case 'invalid':
        // The node may be behind on the rules that exist.
        check(
          action.type === 'set' || (action.type === 'put' && action.overrides.length > 0),
          () => `refused as invalid: ${words()}`,
        );
        world.story.seen(
          action.type === 'set'
            ? `customer set refused for ${answer.field}`
            : 'customer put of a rule that is not there',
        );
        return;
      case 'unavailable': {
        const isFull =
          (answer.reason === 'at_capacity' && world.mayBeFull()) ||
          (answer.reason === 'overloaded' && world.settings.queues !== undefined);
        check(
          askedAt < mustDecideSince() || isFull,
          () => `unavailable though nothing is broken: ${words()}`,
        );
        world.story.seen('customer unavailable');
      }
    }
  }

  /** A process ended: its operators get no answer. */
  lost(node: SimNode): void {
    for (const attempt of this.#open) if (attempt.node === node) this.#open.delete(attempt);
  }

  /** At the end of a run no operator waits any more. */
  checkAnswered(): void {
    const { now, settings } = this.#init.world;
    const oldMillis = now() - 4 * settings.timing.requestDeadlineMillis;
    for (const { node, askedAt, request } of this.#open) {
      const isLate = askedAt < oldMillis && node.isUp && !node.isPaused;
      check(!isLate, () => `node ${node.id} never answered ${JSON.stringify(request)}`);
    }
  }
}

/** The operators of a world, if it has any. */
export function customerOperatorsOf(
  world: ClientWorld,
  clients: Pick<Clients, 'isActive' | 'mustDecideSince' | 'operated'>,
  watch?: DescribedWatch,
): CustomerOperators | undefined {
  const { operators } = world.settings;
  if (operators === undefined) return undefined;
  return new CustomerOperators({
    world,
    operators,
    isActive: () => clients.isActive,
    mustDecideSince: () => clients.mustDecideSince,
    asking: (request) => clients.operated(request),
    ...(watch !== undefined && { askCustomer: (node, customer, done) => watch.say(node, customer, done) }),
  });
}
