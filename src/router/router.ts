/**
 * Finds the node that can decide a request and waits for its answer, but never past the deadline: then the
 * answer is "denied, unavailable" (P3). It caches whom to ask for which partition in one array, drops an entry on the
 * first sign that it is wrong, and makes no decision of its own.
 *
 * While nobody is known, the requests of a partition wait in its queue, and one of them at a time is sent to whom the
 * search names.
 */
import { ANY_RULE } from '../api/stated-rule.ts';
import type { Answer, DoneWith, UserAnswer, UserRequest } from '../api/user-request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { meaningOf } from './answer-meaning.ts';
import { Breaker } from './breaker.ts';
import { LeaderQueue } from './leader-queue.ts';
import { LeaderSearch } from './leader-search.ts';
import { OpenRequest } from './open-request.ts';
import { OpenRequests } from './open-requests.ts';
import type { RouterInit } from './router-init.ts';

/** The lookup of one partition's leader: whom to ask, and who waits. */
interface Lookup {
  readonly search: LeaderSearch;
  readonly queue: LeaderQueue;
  readonly breaker: Breaker;
  /** When the replica here lost its leader. */
  leaderlessSinceMillis: number;
}

export class Router {
  readonly #init: RouterInit;
  /** partition -> whom to ask, 0 = unknown: one read finds the way. */
  readonly #routeOf: Int32Array;
  readonly #lookups: readonly Lookup[];
  readonly #open = new OpenRequests();
  #openCount = 0;
  /** Partitions with requests that wait, or a probe. */
  readonly #searched = new Set<number>();
  /** Partitions whose leader cannot be reached but through another node. */
  readonly #relayed = new Set<number>();

  constructor(init: RouterInit) {
    this.#init = init;
    const { placement, pauseMillisMin, pauseMillisMax } = init;
    const limits = { silentTicksMin: init.breakerTicksMin, pauseTicks: init.lookPauseTicks };
    this.#routeOf = new Int32Array(placement.partitionCount);
    const leaderlessSinceMillis = init.monotonicMillis();
    this.#lookups = Array.from({ length: placement.partitionCount }, (_, partition) => ({
      search: new LeaderSearch({
        // Not this node: its replica is believed without being asked.
        candidates: () => placement.candidatesOf(partition).filter((node) => node !== init.nodeId),
        isReachable: (node) => this.#isReachable(node, partition),
        pauseMillisMin,
        pauseMillisMax,
      }),
      queue: new LeaderQueue(),
      breaker: new Breaker(limits),
      leaderlessSinceMillis,
    }));
  }

  get openCount(): number {
    return this.#openCount;
  }

  partitionOf(userId: string): number {
    return this.#init.partitionOf(userId);
  }

  /**
   * Asks whoever leads the user's partition. `done` is called exactly once, at the latest one tick after the deadline,
   * perhaps before this returns.
   *
   * @param deadlineMillis absent: that of all requests which came as late as this
   */
  ask<R extends UserRequest>(request: R, done: DoneWith<R>, deadlineMillis?: number): void {
    const partition = this.partitionOf(request.userId);
    if (this.#openCount >= this.#init.openMax) {
      done({ kind: 'unavailable', reason: 'overloaded', proposed: false }, partition);
      return;
    }
    const untilMillis = deadlineMillis ?? this.#init.doorMillis() + this.#init.deadlineMillis;
    if (untilMillis <= this.#init.monotonicMillis()) {
      // It waited for too long before this process came to read it.
      done({ kind: 'unavailable', reason: 'deadline', proposed: false }, partition);
      return;
    }
    const open = new OpenRequest({ request, partition, deadlineMillis: untilMillis, done });
    // What is given back may wait: nobody is kept by it, and what is not given back stays charged.
    if (request.ask !== 'refund' && !this.#lookup(partition).breaker.admits()) {
      done({ kind: 'unavailable', reason: 'no_leader', proposed: false }, partition);
      return;
    }
    this.#openCount += 1;
    this.#begin(open);
  }

  #begin(open: OpenRequest): void {
    const route = this.#routeOf[open.partition] ?? NO_NODE;
    if (route === NO_NODE) this.#wait(open);
    else this.#ask(open, route);
    if (!open.isSettled) this.#open.add(open);
  }

  /** While callers are refused at once, the node finds out itself when somebody leads: a look takes a quorum, and no entry. */
  #lookForLeader(partition: number, userId: string): void {
    const { monotonicMillis, lookMillis } = this.#init;
    const open = new OpenRequest({
      request: { ask: 'look', userId, ruleId: ANY_RULE },
      partition,
      deadlineMillis: monotonicMillis() + lookMillis,
      isOwn: true,
      done: () => this.#lookup(partition).breaker.lookEnded(),
    });
    this.#begin(open);
  }

  /** The replica of `partition` on this node learned of a leader in `term`, or lost it. */
  leaderChanged(partition: number, leader: NodeId, term: number): void {
    const lookup = this.#lookup(partition);
    const { search } = lookup;
    if (leader === NO_NODE) {
      lookup.leaderlessSinceMillis = this.#init.monotonicMillis();
      search.lost();
      this.#route(partition, NO_NODE);
      return;
    }
    search.told(leader, term);
    if (search.leader !== leader) return;
    lookup.breaker.heard();
    // Anybody else's word would be tried out first.
    this.#route(partition, this.#isReachable(leader, partition) ? leader : NO_NODE);
    this.#advance(partition);
  }

  /** Nothing can be sent to `node` now, or it cannot answer: whoever it leads, ask another way. */
  peerUnreachable(node: NodeId): void {
    this.#avoid(node);
  }

  /** `node` is connected, and silent: ask others, what can be asked twice at once. */
  peerSuspected(node: NodeId): void {
    this.#avoid(node);
    for (const open of this.#open) {
      if (open.isSettled || open.asked !== node || !open.isRepeatable) continue;
      open.strayed();
      this.#wait(open);
    }
  }

  /** `node` leads nothing any more, and ends soon. */
  peerLeaves(node: NodeId): void {
    for (const [partition, { search }] of this.#lookups.entries()) {
      if (search.leader !== node) continue;
      search.lost();
      // Nor is it of use to ask others to pass anything on to it.
      this.#route(partition, NO_NODE);
    }
    this.#avoid(node);
  }

  #avoid(node: NodeId): void {
    for (let partition = 0; partition < this.#routeOf.length; partition += 1) {
      if (this.#routeOf[partition] === node) this.#route(partition, NO_NODE);
    }
    for (const partition of this.#searched) this.#lookup(partition).queue.avoid(node);
  }

  /** Call every few milliseconds: ends requests at their deadline and goes on looking for leaders. */
  tick(): void {
    for (const [partition, { breaker }] of this.#lookups.entries()) {
      const key = breaker.tick();
      if (key !== undefined) this.#lookForLeader(partition, key);
    }
    this.#expire(this.#init.monotonicMillis());
    for (const partition of this.#relayed) {
      const { leader } = this.#lookup(partition).search;
      if (this.#isReachable(leader, partition)) this.#route(partition, leader);
    }
    for (const partition of this.#searched) {
      const { queue } = this.#lookup(partition);
      queue.prune();
      const slow = queue.tick(this.#init.silentTicksMax);
      // Not suspected, or it would not have the probe any more: it is alive, and who does not lead says so at once.
      if (slow !== undefined) this.#found(partition, slow);
      this.#advance(partition);
      if (queue.isEmpty && !queue.isProbing) this.#searched.delete(partition);
    }
  }

  /** Refuses everything that is still open; for a graceful stop. */
  close(): void {
    this.#expire(Number.POSITIVE_INFINITY);
  }

  #expire(now: number): void {
    for (const open of this.#open.takeDue(now)) this.#settle(open, open.overdue, true);
  }

  #lookup(partition: number): Lookup {
    const lookup = this.#lookups[partition];
    if (lookup === undefined) throw new RangeError(`there is no partition ${partition}`);
    return lookup;
  }

  #isReachable(node: NodeId, partition: number): boolean {
    if (node !== this.#init.nodeId) return node !== NO_NODE && this.#init.forwarder.isReachable(node);
    return this.#init.partitions.has(partition);
  }

  /** From now on `node` is asked for this partition at once; NO_NODE: a leader is looked for. */
  #route(partition: number, node: NodeId): void {
    this.#routeOf[partition] = node;
    const { leader } = this.#lookup(partition).search;
    if (node !== NO_NODE && leader !== NO_NODE && node !== leader) this.#relayed.add(partition);
    else this.#relayed.delete(partition);
  }

  /** `node` decides the requests of this partition, itself or by passing them on to its leader. */
  #found(partition: number, node: NodeId): void {
    const { search } = this.#lookup(partition);
    if (search.leader === NO_NODE) search.proved(node);
    else search.found();
    this.#route(partition, node);
  }

  #denied(partition: number, node: NodeId): void {
    const { search } = this.#lookup(partition);
    search.denied(node);
    // Nobody passes anything on to a leader that nobody believes in.
    const isPointless = search.leader === NO_NODE && this.#relayed.has(partition);
    if (isPointless || this.#routeOf[partition] === node) this.#route(partition, NO_NODE);
  }

  #wait(open: OpenRequest): void {
    this.#enqueue(open);
    this.#advance(open.partition);
  }

  #enqueue(open: OpenRequest): void {
    this.#lookup(open.partition).queue.add(open);
    this.#searched.add(open.partition);
  }

  /** Sends what waits to the leader if there is one to ask, or one request to find out. */
  #advance(partition: number): void {
    const { queue, search } = this.#lookup(partition);
    if (queue.isEmpty) return;
    if (this.#routeOf[partition] !== NO_NODE) {
      this.#release(queue, partition);
      return;
    }
    if (queue.isProbing || this.#hearsSoon(partition)) return;
    const local = this.#init.partitions.get(partition);
    if (local !== undefined) search.told(local.leader, local.term);
    const target = search.next(this.#init.monotonicMillis());
    if (target === NO_NODE) return;
    const open = queue.takeProbe();
    if (open !== undefined) this.#ask(open, target);
  }

  /** The replica here is without a leader, but not for longer than an election takes. */
  #hearsSoon(partition: number): boolean {
    const { partitions, hearsOfLeaders, monotonicMillis, electionMillisMax } = this.#init;
    const { leaderlessSinceMillis } = this.#lookup(partition);
    const local = partitions.get(partition);
    if (local === undefined || local.leader !== NO_NODE || !hearsOfLeaders(partition)) return false;
    return monotonicMillis() < leaderlessSinceMillis + electionMillisMax;
  }

  #release(queue: LeaderQueue, partition: number): void {
    for (const open of queue.takeAll()) {
      if (open.isSettled) continue;
      const route = this.#routeOf[partition] ?? NO_NODE;
      // One of those before was told that it is not the leader.
      if (route === NO_NODE) queue.add(open);
      else this.#ask(open, route);
    }
  }

  #ask(open: OpenRequest, target: NodeId): void {
    const attempt = open.attempt(target);
    const { request, partition, deadlineMillis } = open;
    const { nodeId, partitions, forwarder } = this.#init;
    const done = (answer: Answer): void => this.#answered(open, target, attempt, answer);
    if (target === nodeId) {
      const local = partitions.get(partition);
      // A replica that has moved away leads no more, whatever others may say.
      if (local === undefined) done({ kind: 'notLeader', leader: NO_NODE, term: 0 });
      else local.decide(request, deadlineMillis, done);
      return;
    }
    const { leader } = this.#lookup(partition).search;
    forwarder.forward({
      to: target,
      partition,
      request,
      deadlineMillis,
      relayTo: leader === target || leader === nodeId ? NO_NODE : leader,
      done,
    });
  }

  #answered(open: OpenRequest, asked: NodeId, attempt: number, answer: Answer): void {
    const { partition } = open;
    const isProbe = this.#lookup(partition).queue.maybeEndProbe(open, attempt);
    // A look may be answered too late, and tells who leads all the same.
    const isNews = open.isOwn && this.#routeOf[partition] === NO_NODE;
    this.#learn(partition, asked, answer, isProbe || isNews);
    if (!open.isSettled) this.#conclude(open, attempt, answer);
    this.#advance(partition);
  }

  /** What an answer says about who leads. */
  #learn(partition: number, asked: NodeId, answer: Answer, isProbe: boolean): void {
    switch (answer.kind) {
      case 'decision':
      case 'refund':
      case 'standing':
      case 'customer':
      case 'invalid':
      case 'conflict':
        this.#lookup(partition).breaker.heard();
        if (isProbe) this.#found(partition, asked);
        return;
      case 'notLeader':
        this.#denied(partition, asked);
        if (answer.leader === asked) return;
        if (this.#lookup(partition).search.told(answer.leader, answer.term)) this.#route(partition, NO_NODE);
        return;
      case 'unavailable':
        if (meaningOf(answer) === 'leads') this.#lookup(partition).breaker.heard();
        if (meaningOf(answer) === 'elsewhere') this.#denied(partition, asked);
        else if (isProbe && meaningOf(answer) === 'leads') this.#found(partition, asked);
    }
  }

  #conclude(open: OpenRequest, attempt: number, answer: Answer): void {
    const verdict = open.verdictOn(attempt, answer, this.#init.monotonicMillis());
    if (verdict === 'askAgain') this.#enqueue(open);
    else if (verdict !== undefined) this.#settle(open, verdict);
  }

  #settle(open: OpenRequest, answer: UserAnswer, isOverdue = false): void {
    if (!open.isOwn) this.#openCount -= 1;
    if (isOverdue && !open.isOwn) this.#lookup(open.partition).breaker.overdue(open.request.userId);
    open.settle(answer);
  }
}
