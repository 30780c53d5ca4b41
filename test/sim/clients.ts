/**
 * Users of the simulated cluster: they ask any node, with and without timestamps, costs and request ids, repeat what
 * got lost, and hold the cluster to its word on every answer.
 */
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { AllowAnswer } from '../../src/api/answer.ts';
import { findOverGrant, type ObservedGrant } from '../cluster/over-grant.ts';
import { type AskChecker, TURN_MILLIS } from './ask-checker.ts';
import type { Coverage } from './coverage.ts';
import type { LimitChecker } from './limit-checker.ts';
import { askedBy } from './id-ledger.ts';
import type { Random } from './random.ts';
import type { RejectionChecker, Try } from './rejection-checker.ts';
import { Requests } from './requests.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check, type Story } from './story.ts';

export interface ClientWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly limits: LimitChecker;
  readonly rejections: RejectionChecker;
  readonly asks: AskChecker;
  readonly coverage: Coverage;
  /** Nodes that clients may ask now. */
  readonly askable: () => readonly SimNode[];
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
  committedIndex(group: number): number;
  /** Since `sinceMillis` the partition on `node` was asked for this, and did not answer at once. */
  readonly hasTaken: (node: number, request: AllowRequest, sinceMillis: number) => boolean;
  /** Who leads the partition of this user, and what time it is there. */
  leading(userId: string): { readonly node: SimNode; readonly groupMillis: number } | undefined;
  /** No log of `group` may come to hold this request: that is what its client was told. */
  nowhere(group: number, requestId: string): void;
  /** A partition or a node may have no room for another user. */
  mayBeFull(): boolean;
  /** By how much group time may have outrun real time, because of a wrong clock that was not found out yet. */
  gainedMillis(): number;
}

/** One attempt of a client at one node. */
interface Attempt {
  readonly request: AllowRequest;
  readonly node: SimNode;
  readonly life: number;
  readonly invokedAt: number;
  /** By the clock of the node, when the request was in its socket. */
  readonly arrivedMonotonic: number;
  /** 1 for the first attempt of a question. */
  readonly count: number;
  readonly done: ((answer: AllowAnswer | undefined, partition: number) => void) | undefined;
  readonly charge: Try;
  answered: boolean;
}

const ATTEMPTS_MAX = 4;
/** So many election timeouts later somebody else leads. */
const ELECTIONS_MAX = 4;
const CROWD = 150;
const CROWD_TRIES_MAX = 10;
/** Asked one after the other, so that each is an entry of its own. */
const STREAM = 100;
const STREAM_GAP_MILLIS = 5;
const STREAM_USERS = 10;
const AT_ONCE = 0.1;
/** Meanwhile a clock does not part from real time by what matters. */
const CLOSE_MILLIS = 20;
/** What a process may take on top: a tick, and the answers it still lets pass. */
const LATE_MILLIS_MAX = 25;

export class Clients {
  readonly #world: ClientWorld;
  readonly #random: Random;
  readonly #open = new Set<Attempt>();
  /** Acknowledged grants without timestamps, by rule and user. */
  readonly #observed = new Map<string, ObservedGrant[]>();
  readonly #requests: Requests;
  /** By user and id: whoever repeats a request may get the answer of an attempt that still waits. */
  readonly #firstInvoked = new Map<string, number>();
  isActive = true;
  /** While nothing is broken, every request must be decided. */
  mustDecideSince = Infinity;
  requests = 0;
  grants = 0;
  denials = 0;
  conflicts = 0;
  unavailable = 0;
  atCapacity = 0;
  broken = 0;

  /** A node gives up what it leads, or was handed a moment ago: there may have to be elections. */
  leadersGiveUp(): void {
    const { electionMillis } = this.#world.settings.timing;
    const overMillis = this.#world.now() + ELECTIONS_MAX * electionMillis;
    if (this.mustDecideSince < overMillis) this.mustDecideSince = overMillis;
  }

  constructor(world: ClientWorld) {
    this.#world = world;
    this.#random = world.random.fork();
    this.#requests = new Requests({ settings: world.settings, random: this.#random, now: world.now });
    this.#next();
  }

  #next(): void {
    this.#world.after(this.#random.exponential(this.#world.settings.clients.meanMillis), () => {
      if (this.isActive) this.#ask();
      this.#next();
    });
  }

  #ask(): void {
    const nodes = this.#world.askable();
    if (nodes.length === 0) return;
    const { reuse } = this.#world.settings.clients;
    const other = this.#random.chance(reuse)
      ? this.#requests.underSameId([...this.#open].map(({ request }) => request))
      : undefined;
    this.attempt(this.#random.pick(nodes), other ?? this.#requests.next(), 1);
  }

  /** Requests at one node, one after the other, that one of its leaderships decides if one is found. */
  stream(node: SimNode, isMeant: (userId: string) => boolean): void {
    for (let i = 0; i < STREAM; i += 1) {
      this.#world.after(i * STREAM_GAP_MILLIS, () => {
        const request = this.#requests.next();
        // Few names, so that a state stays small; and none is asked for often: each of them is an entry, and no denial.
        let userId = `${request.userId}s${i % STREAM_USERS}`;
        for (let tries = 1; tries < CROWD_TRIES_MAX && !isMeant(userId); tries += 1) userId = `${userId}s`;
        if (node.isOpen) this.attempt(node, { ...request, userId }, ATTEMPTS_MAX);
      });
    }
  }

  /** Many requests of one user at once, at one node; of one who `isMeant` if one is found. */
  crowd(node: SimNode, isMeant: (userId: string) => boolean): void {
    let { userId } = this.#requests.next();
    for (let tries = 1; tries < CROWD_TRIES_MAX && !isMeant(userId); tries += 1) {
      ({ userId } = this.#requests.next());
    }
    for (let i = 0; i < CROWD; i += 1) {
      const hasId = this.#random.chance(this.#world.settings.clients.withId);
      this.attempt(node, { userId, ...(hasId && { requestId: this.#requests.newId() }) }, ATTEMPTS_MAX);
    }
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

  /** Exactly once, and in time, unless the process is gone or was paused. */
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
    // What a node says after its end reaches nobody.
    if (node.life !== attempt.life || !node.isUp) return;
    this.#open.delete(attempt);
    this.#world.story.step(4, node.id, answer.kind === 'decision' && answer.decision.allowed ? 1 : 0);
    this.#world.story.tell(
      () => `node ${node.id} answers ${JSON.stringify(request)}: ${JSON.stringify(answer)}`,
    );
    attempt.done?.(answer, partition);
    if (isRejection(answer)) this.#world.rejections.rejected(attempt.charge);
    if (isNowhere(answer)) this.#world.rejections.nowhere(attempt.charge);
    switch (answer.kind) {
      case 'decision': {
        const { timing } = this.#world.settings;
        const took = node.monotonicMillis() - attempt.arrivedMonotonic;
        check(
          took <= timing.requestDeadlineMillis + LATE_MILLIS_MAX * Math.max(1, node.clock.rate),
          () => `a decision came after ${took} ms, past its deadline`,
        );
        const group = groupOfPartition(partition);
        this.#world.limits.answered(group, request, answer.decision, {
          committedIndex: this.#world.committedIndex(group),
          invokedMillis: this.#firstInvoked.get(idOf(request)) ?? attempt.invokedAt,
          attemptMillis: attempt.invokedAt,
        });
        this.#world.coverage.decided(request, answer.decision);
        if (answer.decision.allowed) this.#granted(attempt, answer.decision);
        else this.denials += 1;
        if (attempt.done === undefined && this.isActive && this.#random.chance(AT_ONCE))
          this.#askAtOnce(attempt);
        return;
      }
      case 'invalid':
        // A cost above a small limit; a timestamp, if the node's wall clock was set back; a rule that left the table.
        check(
          (request.cost ?? 1) > 1 || request.timestampMillis !== undefined || this.#mayBeUnknown(request),
          () => `refused as invalid: ${JSON.stringify(request)}, ${answer.message}`,
        );
        return;
      case 'conflict':
        this.conflicts += 1;
        check(
          this.#requests.isShared(request),
          () => `nobody else has the id of ${JSON.stringify(request)}, and yet: ${answer.message}`,
        );
        return;
      case 'unavailable': {
        const isFull =
          answer.reason === 'at_capacity' ||
          (answer.reason === 'overloaded' && this.#world.settings.queues !== undefined);
        this.#world.story.seen(`unavailable ${answer.reason}`);
        check(
          answer.reason !== 'at_capacity' || this.#world.mayBeFull(),
          () => `refused for want of room: ${JSON.stringify(request)}`,
        );
        check(
          attempt.invokedAt < this.mustDecideSince || isFull,
          () => `unavailable though nothing is broken: ${JSON.stringify(answer)}`,
        );
        if (answer.reason === 'unknown_outcome') this.#mustHaveLeft(attempt);
        this.unavailable += 1;
        if (answer.reason === 'at_capacity') this.atCapacity += 1;
        const isOnly = attempt.count === 1 && !this.#requests.isShared(request);
        if (!answer.proposed && request.requestId !== undefined && isOnly) {
          this.#world.limits.refused(request.requestId);
          this.#world.nowhere(groupOfPartition(partition), request.requestId);
        }
        this.#again(attempt, answer.proposed);
        return;
      }
    }
  }

  /** The next request of this user was behind the last one, in the same socket. */
  #askAtOnce({ node, request }: Attempt): void {
    const { userId, ruleId } = request;
    if (node.isOpen) this.attempt(node, { userId, ...(ruleId !== undefined && { ruleId }) }, ATTEMPTS_MAX);
  }

  /** Its node has sent it on, or has put it into its own log; what is on its way out leaves with the end of the turn. */
  #mustHaveLeft({ node, request, invokedAt }: Attempt): void {
    const { asks, hasTaken, after } = this.#world;
    const { life } = node;
    after(TURN_MILLIS, () => {
      const hasLeft = asks.hasSent(node.id, request, invokedAt) || hasTaken(node.id, request, invokedAt);
      check(
        hasLeft || node.life !== life || node.isPaused,
        () => `${JSON.stringify(request)} never left node ${node.id}, and yet nobody knows what became of it`,
      );
    });
  }

  #mayBeUnknown({ ruleId }: AllowRequest): boolean {
    const { tables } = this.#world.settings;
    return ruleId !== undefined && tables.some(({ rules }) => rules.every(({ id }) => id !== ruleId));
  }

  #granted({ request, charge }: Attempt, { ruleId, decided }: Decision): void {
    this.grants += 1;
    this.#requests.granted(request);
    this.#askAgain(request, decided.timeMillis);
    if (request.timestampMillis !== undefined || !request.userId.startsWith('user')) return;
    const key = `${ruleId}/${request.userId}/${request.requestId ?? ''}`;
    // A repeated answer is the same grant: the interval of the first one that got it is enough.
    if (request.requestId !== undefined && this.#acknowledged.has(key)) return;
    this.#acknowledged.add(key);
    const observed = this.#observed.get(`${ruleId}/${request.userId}`) ?? [];
    this.#observed.set(`${ruleId}/${request.userId}`, observed);
    const completeMillis = this.#world.now();
    // Whoever asked the same under this id before, and was not rejected, may be whom it was granted to.
    const { begunMillis } =
      request.requestId === undefined ? charge : this.#world.rejections.firstLike(charge);
    for (let i = 0; i < (request.cost ?? 1); i += 1)
      observed.push({ invokeMillis: begunMillis, completeMillis });
  }
  readonly #acknowledged = new Set<string>();

  /** The same request once more: soon, or about when nobody remembers it. */
  #askAgain(request: AllowRequest, grantedMillis: number): void {
    const random = this.#random;
    const { clients, tables } = this.#world.settings;
    if (request.requestId === undefined || !random.chance(clients.again)) return;
    const { requestIdHorizonMillis } = random.pick(tables);
    const when = random.pick(['soon', 'soon', 'about', 'last'] as const);
    if (when === 'last') {
      this.#askAtLast(request, grantedMillis + requestIdHorizonMillis);
      return;
    }
    const aboutMillis = requestIdHorizonMillis * (0.9 + random.unit() / 5);
    this.#world.after(when === 'soon' ? random.exponential(1_000) : aboutMillis, () => {
      const nodes = this.#world.askable();
      if (this.isActive && nodes.length > 0) this.attempt(random.pick(nodes), request, ATTEMPTS_MAX);
    });
  }

  /** In the last millisecond of group time in which the request is remembered, or the next, where nobody has to relay it. */
  #askAtLast(request: AllowRequest, untilMillis: number): void {
    const leader = this.#world.leading(request.userId);
    if (leader === undefined) return;
    const leftMillis = untilMillis + 1.5 * this.#random.unit() - leader.groupMillis;
    if (leftMillis > CLOSE_MILLIS) {
      this.#world.after(leftMillis - CLOSE_MILLIS / 2, () => this.#askAtLast(request, untilMillis));
      return;
    }
    const { node } = leader;
    this.#world.after(Math.max(0, leftMillis), () => {
      if (this.isActive && node.isOpen) this.attempt(node, request, ATTEMPTS_MAX);
    });
  }

  /** A process ended: whoever waited for it learns nothing. */
  lost(node: SimNode): void {
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
      this.#again(attempt, true);
    }
  }

  /** Repeats a request that may have counted under its id, and one that did not as a new question. */
  #again(attempt: Attempt, maybeProposed: boolean): void {
    const { request, count } = attempt;
    if (attempt.done !== undefined || count >= ATTEMPTS_MAX || !this.#random.chance(0.8)) return;
    const { requestId } = request;
    if (requestId === undefined) return;
    const isSame = maybeProposed || count > 1;
    const repeated = isSame ? request : { ...request, requestId: this.#requests.newId() };
    this.#world.after(this.#random.exponential(300), () => {
      const nodes = this.#world.askable();
      if (nodes.length === 0) return;
      this.attempt(this.#random.pick(nodes), repeated, isSame ? count + 1 : 1);
    });
  }

  /** What the clients saw, without a look inside: no certain violation in real time. */
  checkObserved(): void {
    const { tables } = this.#world.settings;
    for (const [key, grants] of this.#observed) {
      const ruleId = key.slice(0, key.indexOf('/'));
      const rules = tables.flatMap((table) => table.rules.filter((rule) => rule.id === ruleId));
      const limit = Math.max(...rules.map((rule) => rule.limit));
      const windowMillis = Math.min(...rules.map((rule) => rule.windowMillis));
      const found = findOverGrant(grants, limit, windowMillis - this.#world.gainedMillis());
      check(found === undefined, () => `clients saw an over-grant for ${key}: ${found ?? ''}`);
    }
  }
}

/** Whoever is told this must not be charged for it. */
function isRejection(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed;
    case 'unavailable':
      return !answer.proposed;
    case 'invalid':
    case 'conflict':
      return true;
  }
}

/** What is told this reached no log, and never will. */
function isNowhere(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed && answer.decision.decided.position === undefined;
    case 'unavailable':
      return !answer.proposed;
    case 'invalid':
    case 'conflict':
      return false;
  }
}

function idOf({ userId, requestId }: AllowRequest): string {
  return requestId === undefined ? '' : JSON.stringify([userId, requestId]);
}
