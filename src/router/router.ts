/**
 * Finds the node that can decide a request and waits for its answer, until the deadline at most: then the answer is
 * "denied, unavailable" (promise P3). It caches one node per partition and drops the entry at the first sign that it is
 * wrong. While no leader is known, requests wait in the partition's queue, and one at a time is sent as a probe.
 */
import { ANY_RULE } from '../api/stated-rule.ts';
import type { Answer, DoneWith, UserAnswer, UserRequest } from '../api/user-request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { meaningOf } from './answer-meaning.ts';
import { Breaker } from './breaker.ts';
import { LeaderQueue } from './leader-queue.ts';
import { LeaderSearch } from './leader-search.ts';
import { OpenRequest, OpenRequests } from './open-request.ts';
import type { RouterInit } from './router-init.ts';

/** The state of one partition's search for its leader. */
interface Lookup {
  readonly search: LeaderSearch;
  readonly queue: LeaderQueue;
  readonly breaker: Breaker;
  /** When the replica on this node lost its leader. */
  leaderlessSinceMillis: number;
}

/** The router of one node. */
export class Router {
  readonly #init: RouterInit;
  /** partition -> node to ask; 0: unknown. The hot path reads nothing else. */
  readonly #routeOf: Int32Array;
  readonly #lookups: readonly Lookup[];
  readonly #open = new OpenRequests();
  #openCount = 0;
  /** Partitions with waiting requests or a probe. */
  readonly #searched = new Set<number>();
  /** Partitions whose leader can only be reached through another node. */
  readonly #relayed = new Set<number>();

  constructor(init: RouterInit) {
    this.#init = init;
    const { placement, pauseMillisMin, pauseMillisMax } = init;
    const limits = { silentTicksMin: init.breakerTicksMin, pauseTicks: init.searchPauseTicks };
    this.#routeOf = new Int32Array(placement.partitionCount);
    const leaderlessSinceMillis = init.monotonicMillis();
    this.#lookups = Array.from({ length: placement.partitionCount }, (_, partition) => ({
      search: new LeaderSearch({
        // This node is left out: its replica's knowledge is used directly.
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
   * Asks the leader of the user's partition. `done` is called exactly once, at the latest one tick after the
   * deadline, perhaps before this returns. @param deadlineMillis absent: the usual timeout, from the arrival of the
   * request
   */
  ask<R extends UserRequest>(request: R, done: DoneWith<R>, deadlineMillis?: number): void {
    const partition = this.partitionOf(request.userId);
    if (this.#openCount >= this.#init.openMax) {
      done({ kind: 'unavailable', reason: 'overloaded', proposed: false }, partition);
      return;
    }
    const untilMillis = deadlineMillis ?? this.#init.listenerMillis() + this.#init.deadlineMillis;
    if (untilMillis <= this.#init.monotonicMillis()) {
      // The request waited too long before this process read it.
      done({ kind: 'unavailable', reason: 'deadline', proposed: false }, partition);
      return;
    }
    const open = new OpenRequest({ request, partition, deadlineMillis: untilMillis, done });
    // Refunds may wait: no caller is held up, and a grant that is not refunded stays charged.
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

  /** Probes for a leader while the breaker refuses requests. A peek needs a quorum but no log entry. */
  #searchForLeader(partition: number, userId: string): void {
    const { monotonicMillis, searchMillis } = this.#init;
    const open = new OpenRequest({
      request: { ask: 'peek', userId, ruleId: ANY_RULE },
      partition,
      deadlineMillis: monotonicMillis() + searchMillis,
      isOwn: true,
      done: () => this.#lookup(partition).breaker.searchEnded(),
    });
    this.#begin(open);
  }

  /** The replica of `partition` on this node learned of a leader in `term`, or lost it (NO_NODE). */
  leaderChanged(partition: number, leader: NodeId, term: number): void {
    const lookup = this.#lookup(partition);
    const { search } = lookup;
    if (leader === NO_NODE) {
      lookup.leaderlessSinceMillis = this.#init.monotonicMillis();
      search.lost();
      this.#route(partition, NO_NODE);
      return;
    }
    search.reported(leader, term);
    if (search.leader !== leader) return;
    lookup.breaker.heard();
    // The own replica's word needs no probe, unlike that of others.
    this.#route(partition, this.#isReachable(leader, partition) ? leader : NO_NODE);
    this.#advance(partition);
  }

  /** Nothing can be sent to `node` now, or it cannot answer. */
  peerUnreachable(node: NodeId): void {
    this.#avoid(node);
  }

  /** `node` is connected but silent: repeatable requests are sent elsewhere. */
  peerSuspected(node: NodeId): void {
    this.#avoid(node);
    for (const open of this.#open) {
      if (open.isSettled || open.asked !== node || !open.isRepeatable) continue;
      open.sentAgain();
      this.#wait(open);
    }
  }

  /** `node` gave up its leaders and ends soon. */
  peerLeaves(node: NodeId): void {
    for (const [partition, { search }] of this.#lookups.entries()) {
      if (search.leader !== node) continue;
      search.lost();
      // Nor should others relay requests to it.
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

  /** Call every few milliseconds: ends requests at their deadline and continues the searches. */
  tick(): void {
    for (const [partition, { breaker }] of this.#lookups.entries()) {
      const key = breaker.tick();
      if (key !== undefined) this.#searchForLeader(partition, key);
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
      // The node is not suspected, so it is alive. A node that does not lead says so at once. So this one leads and is
      // only slow.
      if (slow !== undefined) this.#found(partition, slow);
      this.#advance(partition);
      if (queue.isEmpty && !queue.isProbing) this.#searched.delete(partition);
    }
  }

  /** Answers everything that is still open; for a graceful stop. */
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

  /** Routes this partition to `node`; NO_NODE: search for a leader. */
  #route(partition: number, node: NodeId): void {
    this.#routeOf[partition] = node;
    const { leader } = this.#lookup(partition).search;
    if (node !== NO_NODE && leader !== NO_NODE && node !== leader) this.#relayed.add(partition);
    else this.#relayed.delete(partition);
  }

  /** `node` decides the requests of this partition, itself or by relaying them. */
  #found(partition: number, node: NodeId): void {
    const { search } = this.#lookup(partition);
    if (search.leader === NO_NODE) search.proved(node);
    else search.found();
    this.#route(partition, node);
  }

  #denied(partition: number, node: NodeId): void {
    const { search } = this.#lookup(partition);
    search.denied(node);
    // Relaying is useless when no leader is known.
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

  /** Sends what waits to the leader if one is known, else one request as a probe. */
  #advance(partition: number): void {
    const { queue, search } = this.#lookup(partition);
    if (queue.isEmpty) return;
    if (this.#routeOf[partition] !== NO_NODE) {
      this.#release(queue, partition);
      return;
    }
    if (queue.isProbing || this.#hearsSoon(partition)) return;
    const local = this.#init.partitions.get(partition);
    if (local !== undefined) search.reported(local.leader, local.term);
    const target = search.next(this.#init.monotonicMillis());
    if (target === NO_NODE) return;
    const open = queue.takeProbe();
    if (open !== undefined) this.#ask(open, target);
  }

  /** The replica on this node has no leader, but not for longer than an election takes. */
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
      // The answer to one of the requests before was "not leader".
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
      // A replica that has moved away does not lead, even if others say so.
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
    // A probe of the breaker may be answered too late, but still says who leads.
    const isNews = open.isOwn && this.#routeOf[partition] === NO_NODE;
    this.#learn(partition, asked, answer, isProbe || isNews);
    if (!open.isSettled) this.#conclude(open, attempt, answer);
    this.#advance(partition);
  }

  /** Learns from an answer who leads. */
  #learn(partition: number, asked: NodeId, answer: Answer, isProbe: boolean): void {
    switch (answer.kind) {
      case 'decision':
      case 'refund':
      case 'keyStatus':
      case 'customer':
      case 'invalid':
      case 'conflict':
        this.#lookup(partition).breaker.heard();
        if (isProbe) this.#found(partition, asked);
        return;
      case 'notLeader':
        this.#denied(partition, asked);
        if (answer.leader === asked) return;
        if (this.#lookup(partition).search.reported(answer.leader, answer.term))
          this.#route(partition, NO_NODE);
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
