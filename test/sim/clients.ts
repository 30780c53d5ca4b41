/**
 * Users of the simulated cluster: they ask any node, with and without timestamps, costs and request ids, repeat lost
 * requests, and check every answer.
 */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { CustomerRequest } from '../../src/api/customer.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { TURN_MILLIS } from './ask-checker.ts';
import { Crowds } from './crowds.ts';
import { type Asked, askedBy, limitsOf } from './id-ledger.ts';
import type { Random } from './random.ts';
import { Refunders } from './refunders.ts';
import { isNowhere, isRejection } from './rejection-checker.ts';
import { Repeats } from './repeats.ts';
import { Requests } from './requests.ts';
import type { Attempt, ClientWorld } from './client-world.ts';
import { ObservedGrants } from './observed-grants.ts';
import { Patience } from './patience.ts';
import type { GroupId } from '../../raft/types.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

/** After this many election timeouts another node leads. */
const ELECTIONS_MAX = 4;
const AT_ONCE = 0.1;
/** The extra time that a process may take: a tick, and the answers it still lets pass. */
const LATE_MILLIS_MAX = 25;

export class Clients {
  readonly #world: ClientWorld;
  readonly #random: Random;
  readonly #open = new Set<Attempt>();
  readonly #observed: ObservedGrants;
  readonly #requests: Requests;
  readonly #repeats: Repeats;
  readonly refunders: Refunders;
  readonly crowds: Crowds;
  readonly patience: Patience;
  /** By user and id: a repeated request may get the answer of an attempt that still waits. */
  readonly #firstInvoked = new Map<string, number>();
  isActive = true;
  /**
   * Multiplies the time between two moments of asking. It grows once there are no faults, when one more request shows
   * little.
   */
  slowness = 1;
  /** While there is no fault, every request must be decided. */
  mustDecideSince = Infinity;
  requests = 0;
  grants = 0;
  denials = 0;
  conflicts = 0;
  unavailable = 0;
  atCapacity = 0;
  broken = 0;

  /** A node hands over what it leads, or was handed a moment ago: there may have to be elections. */
  leadersGiveUp(): void {
    const { electionMillis } = this.#world.settings.timing;
    const overMillis = this.#world.now() + ELECTIONS_MAX * electionMillis;
    if (this.mustDecideSince < overMillis) this.mustDecideSince = overMillis;
  }

  constructor(world: ClientWorld) {
    this.#world = world;
    this.#random = world.random.fork();
    const { settings, now, partitionOf } = world;
    this.#requests = new Requests({
      settings,
      random: this.#random,
      now,
      partitionOf,
      rules: () => world.coverage.newestRules,
    });
    this.#observed = new ObservedGrants(world);
    this.patience = new Patience({ random: this.#random, now, isPatient: settings.clients.isPatient });
    this.#repeats = new Repeats({
      world,
      random: this.#random,
      isActive: () => this.isActive,
      newId: () => this.#requests.newId(),
      patience: this.patience,
      attempt: (node, request, count) => this.attempt(node, request, count),
    });
    this.crowds = new Crowds({
      world,
      random: this.#random,
      requests: this.#requests,
      patience: this.patience,
      attempt: (node, request, count) => this.attempt(node, request, count),
    });
    this.refunders = new Refunders({
      world,
      isActive: () => this.isActive,
      refunding: (request) => this.#observed.refunding(request),
      mustDecideSince: () => this.mustDecideSince,
    });
    this.#next();
  }

  #next(): void {
    const { meanMillis, atOnceMax } = this.#world.settings.clients;
    this.#world.after(this.#random.exponential(meanMillis * this.slowness), () => {
      // A page load causes several requests at one moment, often at one node.
      const count = this.#random.chance(0.5) ? 1 : this.#random.between(1, atOnceMax);
      if (this.isActive && !this.#isAsleep) this.#askFor(count);
      this.#next();
    });
  }

  get #isAsleep(): boolean {
    const { clients, safetyMillis } = this.#world.settings;
    const { bursts } = clients;
    const now = this.#world.now();
    if (bursts === undefined || now >= safetyMillis) return false;
    return now % (bursts.burstMillis + bursts.sleepMillis) >= bursts.burstMillis;
  }

  #askFor(count: number): void {
    const nodes = this.patience.worthAsking(this.#world.askable());
    if (nodes.length === 0) return;
    const node = this.#random.pick(nodes);
    const isSpread = this.#random.chance(0.5);
    for (let i = 0; i < count; i += 1) this.#ask(isSpread ? this.#random.pick(nodes) : node);
  }

  #ask(node: SimNode): void {
    const { reuse } = this.#world.settings.clients;
    const other = this.#random.chance(reuse)
      ? this.#requests.underSameId([...this.#open].map(({ request }) => request))
      : undefined;
    const request = other ?? this.#requests.next();
    if (this.patience.mayAsk(this.#world.partitionOf(request.userId))) this.attempt(node, request, 1);
  }

  /** The next request of a user. */
  draw(): AllowRequest {
    return this.#requests.next();
  }

  /** Asks one node. `done` is called once, with undefined if the connection to the node broke. */
  attempt(node: SimNode, request: AllowRequest, count: number, done?: Attempt['done']): void {
    const attempt: Attempt = {
      request,
      node,
      life: node.life,
      invokedAt: this.#world.now(),
      arrivedMonotonic: node.monotonicMillis(),
      count,
      done,
      charge: this.#world.rejections.begun(askedBy(request), this.#world.now()),
      answered: false,
    };
    this.#observed.asked(request);
    if (request.requestId !== undefined && !this.#firstInvoked.has(idOf(request)))
      this.#firstInvoked.set(idOf(request), attempt.invokedAt);
    this.requests += 1;
    this.#world.asks.asked(node.id, request);
    this.#world.coverage.asked(request);
    this.#open.add(attempt);
    this.#world.story.step(3, node.id, 0);
    this.#watch(attempt);
    node.allow(request, (answer, partition) => this.#answered(attempt, answer, partition));
  }

  /** Each attempt is answered exactly once, and in time, unless the process is gone or was paused. */
  #watch(attempt: Attempt): void {
    const { requestDeadlineMillis, tickMillis } = this.#world.settings.timing;
    const patienceMillis = requestDeadlineMillis + 3 * tickMillis + LATE_MILLIS_MAX;
    this.#world.after(patienceMillis, () => {
      const { node } = attempt;
      if (attempt.answered || node.life !== attempt.life || !node.isUp) return;
      // Its clock may be slow.
      const isEarly = node.monotonicMillis() - attempt.arrivedMonotonic < patienceMillis - 1;
      if (node.isPaused || node.pausedAt > attempt.invokedAt || isEarly) {
        this.#watch(attempt);
        return;
      }
      check(
        false,
        () => `node ${attempt.node.id} never answered ${JSON.stringify(attempt.request)}, asked long ago`,
      );
    });
  }

  #answered(attempt: Attempt, answer: AllowAnswer, partition: number): void {
    const { node, request } = attempt;
    check(!attempt.answered, () => `${JSON.stringify(request)} was answered twice`);
    attempt.answered = true;
    this.#world.asks.answered(node.id, request);
    // Answers of a process after its end reach no client.
    if (node.life !== attempt.life || !node.isUp) return;
    this.#open.delete(attempt);
    this.#world.story.step(4, node.id, answer.kind === 'decision' && answer.decision.allowed ? 1 : 0);
    this.#world.story.report(
      () => `node ${node.id} answers ${JSON.stringify(request)}: ${JSON.stringify(answer)}`,
    );
    attempt.done?.(answer, partition);
    this.patience.answered(node, partition, answer);
    if (isRejection(answer)) this.#world.rejections.rejected(attempt.charge);
    if (isNowhere(answer)) this.#world.rejections.nowhere(attempt.charge);
    switch (answer.kind) {
      case 'decision':
        this.#decided(attempt, answer.decision, groupOfPartition(partition));
        return;
      case 'invalid':
        // A cost above a small limit; a timestamp, if the node's wall clock was set back; a rule that left the table.
        check(
          request.timestampMillis !== undefined ||
            limitsOf(askedBy(request)).some((one) => this.#mayBeWrong(one)),
          () => `refused as invalid: ${JSON.stringify(request)}, ${answer.message}`,
        );
        return;
      case 'conflict':
        this.conflicts += 1;
        check(
          answer.field === 'requestId' ? this.refunders.isAsked(request) : this.#requests.isShared(request),
          () => `no other request has the id of ${JSON.stringify(request)}: ${answer.message}`,
        );
        return;
      case 'unavailable':
        this.#unavailable(attempt, answer, groupOfPartition(partition));
        return;
    }
  }

  #decided(attempt: Attempt, decision: Decision, group: GroupId): void {
    const { node, request, invokedAt } = attempt;
    const { timing } = this.#world.settings;
    const took = node.monotonicMillis() - attempt.arrivedMonotonic;
    check(
      took <= timing.requestDeadlineMillis + LATE_MILLIS_MAX * Math.max(1, node.clock.rate),
      () => `a decision came after ${took} ms, past its deadline`,
    );
    this.#world.limits.answered(group, request, decision, {
      committedIndex: this.#world.committedIndex(group),
      invokedMillis: this.#firstInvoked.get(idOf(request)) ?? invokedAt,
      attemptMillis: invokedAt,
    });
    this.#world.coverage.decided(request, decision);
    this.#sawOwnLimit(request, decision, group);
    if (decision.allowed) this.#granted(attempt, decision);
    else this.denials += 1;
    if (attempt.done === undefined && this.isActive && this.#random.chance(AT_ONCE))
      this.#repeats.atOnce(attempt);
  }

  #sawOwnLimit({ userId }: AllowRequest, { allowed, ruleId, decided }: Decision, group: GroupId): void {
    const { overrides } = this.#world.limits.recordAt(group, decided.index, userId);
    if (overrides.some((one) => one.ruleId === ruleId))
      this.#world.story.seen(`customer ${allowed ? 'granted' : 'denied'} by a limit of its own`);
  }

  #unavailable(
    attempt: Attempt,
    answer: Extract<AllowAnswer, { kind: 'unavailable' }>,
    group: GroupId,
  ): void {
    const { request } = attempt;
    const { reason, proposed } = answer;
    const isFull =
      reason === 'at_capacity' || (reason === 'overloaded' && this.#world.settings.queues !== undefined);
    const isAtOnce = reason === 'no_leader' && this.#world.now() === attempt.invokedAt;
    this.#world.story.seen(`unavailable ${reason}${isAtOnce ? ' at once' : ''}`);
    check(
      reason !== 'at_capacity' || this.#world.mayBeFull(),
      () => `refused for want of room: ${JSON.stringify(request)}`,
    );
    check(
      attempt.invokedAt < this.mustDecideSince || isFull,
      () => `unavailable though nothing is broken: ${JSON.stringify(answer)}`,
    );
    if (reason === 'unknown_outcome') this.#mustHaveLeft(attempt);
    this.unavailable += 1;
    if (reason === 'at_capacity') this.atCapacity += 1;
    const isOnly = attempt.count === 1 && !this.#requests.isShared(request);
    if (!proposed && request.requestId !== undefined && isOnly) {
      this.#world.limits.refused(request.requestId);
      this.#world.nowhere(group, request.requestId);
    }
    this.#repeats.unanswered(attempt, proposed);
  }

  /**
   * The node has forwarded the request, or appended it to its own log. Outgoing frames leave at the end of the turn
   * (one pass of the event loop).
   */
  #mustHaveLeft({ node, request, invokedAt }: Attempt): void {
    const { asks, after } = this.#world;
    const { life } = node;
    after(TURN_MILLIS, () => {
      const hasLeft = asks.hasSent(node.id, request, invokedAt) || asks.hasTaken(node.id, request, invokedAt);
      check(
        hasLeft || node.life !== life || node.isPaused,
        () => `outcome reported as unknown, but ${JSON.stringify(request)} never left node ${node.id}`,
      );
    });
  }

  #mayBeWrong({ rule, cost }: Asked): boolean {
    const { tables } = this.#world.settings;
    return cost > 1 || (rule !== '' && tables.some(({ rules }) => rules.every(({ id }) => id !== rule)));
  }

  /** A process ended: its clients get no answer. */
  lost(node: SimNode): void {
    this.refunders.lost(node);
    for (const attempt of this.#open) {
      if (attempt.node !== node) continue;
      check(
        this.#world.now() < this.mustDecideSince,
        () => `node ${node.id} ended without an answer to ${JSON.stringify(attempt.request)}`,
      );
      this.#open.delete(attempt);
      attempt.answered = true;
      this.#world.asks.answered(node.id, attempt.request);
      this.broken += 1;
      attempt.done?.(undefined, 0);
      this.#repeats.unanswered(attempt, true);
    }
  }

  #granted(attempt: Attempt, decision: Decision): void {
    const { request } = attempt;
    this.grants += 1;
    this.#requests.granted(request);
    this.#repeats.granted(request, decision.decided.timeMillis);
    // A request under the same id with other limits may be granted by those.
    const isSure = request.askedDigest === undefined || !this.#requests.isShared(request);
    if (isSure) this.#observed.granted(attempt, decision);
    this.refunders.granted(request, decision, attempt.invokedAt);
  }

  /** An operator requests this change of a key: it may be granted more, or less. */
  operated(request: CustomerRequest): void {
    this.#observed.operated(request);
  }

  /** Checks that the clients' view, without internal knowledge, proves no violation in real time. */
  checkObserved(): void {
    this.#observed.check();
  }
}

function idOf({ userId, requestId }: AllowRequest): string {
  return requestId === undefined ? '' : JSON.stringify([userId, requestId]);
}
