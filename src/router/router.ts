/**
 * Finds the node that can decide a request and waits for its answer, but never past the deadline: then the
 * answer is "denied, unavailable" (P3). It caches who leads which partition in one array, drops an entry on the
 * first sign that it is wrong, and makes no decision of its own.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { AllowRequest } from '../limiter/request.ts';
import type { Answer } from '../partition/answer.ts';
import { type Hash32, partitionOf } from '../partition/hash.ts';
import type { Partition } from '../partition/partition.ts';
import type { Forwarder } from './forwarder.ts';

/** What a front door gets: never `notLeader`, that is settled here. */
export type RoutedAnswer = Exclude<Answer, { kind: 'notLeader' }>;

export interface RouterInit {
  readonly nodeId: NodeId;
  readonly placement: {
    readonly partitionCount: number;
    /** Nodes to ask who leads the partition, likeliest first. */
    candidatesOf(partition: number): readonly NodeId[];
  };
  /** The replicas on this node. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /** Can the replica here be relied on to learn who leads? Otherwise this node asks around. */
  readonly hearsOfLeaders: (partition: number) => boolean;
  readonly forwarder: Forwarder;
  readonly isConnected: (node: NodeId) => boolean;
  readonly hash: Hash32;
  readonly monotonicMillis: () => number;
  readonly deadlineMillis: number;
  /** Requests without an answer yet; more are refused as `overloaded`. */
  readonly openMax: number;
}

/** Ticks are this coarse at most; an answer this little past its deadline still counts. */
const LATE_ANSWER_MILLIS_MAX = 20;

interface Open {
  readonly request: AllowRequest;
  readonly partition: number;
  readonly deadlineMillis: number;
  readonly done: (answer: RoutedAnswer, partition: number) => void;
  attempts: number;
  /** The node that has it now; none: it waits for a leader. */
  asked: NodeId;
  /** An attempt may have reached a log, so "nothing was proposed" can no longer be claimed. */
  maybeProposed: boolean;
  settled: boolean;
}

export class Router {
  readonly #init: RouterInit;
  /** partition -> its leader, as far as known; 0 = unknown. The hot path reads this and nothing else. */
  readonly #leaderOf: Int32Array;
  /** All requests without an answer, in order of their deadlines, which is the order they came in. */
  #open: Open[] = [];
  #openCount = 0;
  /** Where the search for the leader of a partition elsewhere begins; moves on from replicas that do not answer. */
  #searchFrom = 0;
  /** Requests that wait for a leader to be known. */
  #waiting: Open[] = [];

  constructor(init: RouterInit) {
    this.#init = init;
    this.#leaderOf = new Int32Array(init.placement.partitionCount);
  }

  get openCount(): number {
    return this.#openCount;
  }

  partitionOf(userId: string): number {
    return partitionOf(userId, this.#init.placement.partitionCount, this.#init.hash);
  }

  /**
   * Asks for a grant. `done` is called exactly once, at the latest one tick after the deadline, perhaps before
   * this returns.
   */
  allow(request: AllowRequest, done: (answer: RoutedAnswer, partition: number) => void): void {
    const partition = this.partitionOf(request.userId);
    if (this.#openCount >= this.#init.openMax) {
      done({ kind: 'unavailable', reason: 'overloaded', proposed: false }, partition);
      return;
    }
    const open: Open = {
      request,
      partition,
      deadlineMillis: this.#init.monotonicMillis() + this.#init.deadlineMillis,
      done,
      attempts: 0,
      asked: NO_NODE,
      maybeProposed: false,
      settled: false,
    };
    this.#openCount += 1;
    this.#dispatch(open);
    if (!open.settled) this.#open.push(open);
  }

  /** A partition on this node learned of a leader, or lost it. */
  leaderChanged(partition: number, leader: NodeId): void {
    this.#leaderOf[partition] = leader;
    if (leader !== NO_NODE && this.#waiting.length > 0) this.#dispatchWaiting(partition);
  }

  /** Nothing can be sent to `node` now: whoever it leads, ask again. */
  peerDisconnected(node: NodeId): void {
    for (let partition = 0; partition < this.#leaderOf.length; partition += 1) {
      if (this.#leaderOf[partition] === node) this.#leaderOf[partition] = NO_NODE;
    }
  }

  /** Call every few milliseconds: ends requests at their deadline and tries again those that wait. */
  tick(): void {
    this.#expire(this.#init.monotonicMillis());
    if (this.#waiting.length > 0) this.#dispatchWaiting();
  }

  /** Refuses everything that is still open; for a graceful stop. */
  close(): void {
    this.#expire(Number.POSITIVE_INFINITY);
  }

  #expire(now: number): void {
    let count = 0;
    let wasSilent = false;
    for (const open of this.#open) {
      if (!open.settled && open.deadlineMillis > now) break;
      count += 1;
      if (open.settled) continue;
      // Whoever has it may have proposed it: only an answer could say that nothing happened.
      const isAsking = open.asked !== NO_NODE;
      const reason = isAsking ? 'deadline' : 'no_leader';
      if (isAsking && !this.#init.hearsOfLeaders(open.partition)) {
        // Nothing else tells us that a node elsewhere is silent: a stopped process keeps its connections.
        this.#forget(open.partition, open.asked);
        wasSilent = true;
      }
      this.#settle(open, { kind: 'unavailable', reason, proposed: open.maybeProposed || isAsking });
    }
    if (wasSilent) this.#searchFrom += 1;
    if (count > 0) this.#open.splice(0, count);
  }

  /** Those of one partition, or all. */
  #dispatchWaiting(partition?: number): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const open of waiting) {
      if (open.settled) continue;
      if (partition === undefined || open.partition === partition) this.#dispatch(open);
      else this.#waiting.push(open);
    }
  }

  #wait(open: Open): void {
    open.asked = NO_NODE;
    this.#waiting.push(open);
  }

  #dispatch(open: Open): void {
    const target = this.#target(open);
    if (target === NO_NODE) {
      this.#wait(open);
      return;
    }
    open.attempts += 1;
    open.asked = target;
    const { request, partition, deadlineMillis } = open;
    const local = this.#init.partitions.get(partition);
    if (target === this.#init.nodeId && local !== undefined) {
      local.decide(request, deadlineMillis, (answer) => this.#answered(open, target, answer));
      return;
    }
    this.#init.forwarder.forward(target, partition, request, deadlineMillis, (answer) =>
      this.#answered(open, target, answer),
    );
  }

  /** The cached leader; else what our own replica believes; else, for a partition elsewhere, one replica in turn. */
  #target(open: Open): NodeId {
    const { partition } = open;
    const local = this.#init.partitions.get(partition);
    const cached = this.#leaderOf[partition] ?? NO_NODE;
    const isGone = cached === this.#init.nodeId && local === undefined;
    if (cached !== NO_NODE && !isGone) return cached;
    if (local !== undefined && this.#init.hearsOfLeaders(partition)) {
      if (!this.#canAsk(partition, local.leader)) return NO_NODE;
      this.#leaderOf[partition] = local.leader;
      return local.leader;
    }
    const { nodeId, placement, isConnected } = this.#init;
    const isReachable = (node: NodeId): boolean =>
      node === nodeId ? local !== undefined : isConnected(node);
    const reachable = placement.candidatesOf(partition).filter(isReachable);
    const turn = open.attempts + this.#searchFrom;
    return reachable[turn % Math.max(1, reachable.length)] ?? NO_NODE;
  }

  #canAsk(partition: number, node: NodeId): boolean {
    // Others may still believe in a replica that is gone from here.
    if (node === this.#init.nodeId) return this.#init.partitions.has(partition);
    return node !== NO_NODE && this.#init.isConnected(node);
  }

  #answered(open: Open, asked: NodeId, answer: Answer): void {
    if (open.settled) return;
    open.asked = NO_NODE;
    switch (answer.kind) {
      case 'decision':
        // After a stall an answer may come before the tick that would have refused: late is late (P3).
        if (this.#init.monotonicMillis() > open.deadlineMillis + LATE_ANSWER_MILLIS_MAX) {
          this.#settle(open, { kind: 'unavailable', reason: 'deadline', proposed: true });
          return;
        }
        // Of partitions on this node Raft itself tells us; of the others an answer is the proof.
        if (!this.#init.hearsOfLeaders(open.partition)) this.#leaderOf[open.partition] = asked;
        this.#settle(open, answer);
        return;
      case 'invalid':
        this.#settle(open, answer);
        return;
      case 'notLeader':
        this.#redirect(open, asked, answer.leader);
        return;
      case 'unavailable':
        if (answer.proposed) open.maybeProposed = true;
        if (this.#mayRetry(open, answer)) {
          this.#forget(open.partition, asked);
          this.#wait(open);
        } else {
          this.#settle(open, { ...answer, proposed: open.maybeProposed });
        }
        return;
    }
  }

  /** A repeat is harmless if nothing reached the log, or if the request carries an id that makes it the same one. */
  #mayRetry(open: Open, answer: Extract<Answer, { kind: 'unavailable' }>): boolean {
    switch (answer.reason) {
      case 'no_leader':
      case 'starting':
      case 'unknown_outcome':
        return !answer.proposed || open.request.requestId !== undefined;
      case 'deadline':
      case 'overloaded':
      case 'low_disk':
      case 'not_member':
        return false;
    }
  }

  #redirect(open: Open, asked: NodeId, leader: NodeId): void {
    this.#forget(open.partition, asked);
    // Follow one hint at once; after that, at most one attempt per tick, so that two nodes that each believe in
    // the other cannot bounce a request between them.
    if (open.attempts === 1 && leader !== asked && this.#canAsk(open.partition, leader)) {
      this.#leaderOf[open.partition] = leader;
      this.#dispatch(open);
      return;
    }
    this.#wait(open);
  }

  #forget(partition: number, node: NodeId): void {
    if (this.#leaderOf[partition] === node) this.#leaderOf[partition] = NO_NODE;
  }

  #settle(open: Open, answer: RoutedAnswer): void {
    open.settled = true;
    this.#openCount -= 1;
    open.done(answer, open.partition);
  }
}
