/**
 * Finds the node that can decide a request and waits for its answer, but never past the deadline: then the
 * answer is "denied, unavailable" (P3). It caches whom to ask for which partition in one array, drops an entry on the
 * first sign that it is wrong, and makes no decision of its own.
 *
 * While nobody is known, the requests of a partition wait in one queue, and one of them at a time is sent to find out
 * (the probe); the others follow when it was decided. What is asked elsewhere meanwhile may have been proposed there:
 * so only a request with an id, which makes a repeat the same request, is ever asked in two places.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { AllowAnswer, AllowDone } from '../api/answer.ts';
import type { AllowRequest } from '../api/request.ts';
import type { Answer } from '../partition/answer.ts';
import { type Hash32, partitionOf } from '../partition/hash.ts';
import type { Partition } from '../partition/partition.ts';
import type { Forwarder } from './forwarder.ts';
import { LeaderSearch } from './leader-search.ts';

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
  readonly hash: Hash32;
  readonly monotonicMillis: () => number;
  /** On the same clock: what is asked now came after this. */
  readonly doorMillis: () => number;
  readonly deadlineMillis: number;
  /** A node that is alive and has a request for so long, without refusing it, leads. */
  readonly silentTicksMax: number;
  /** Between two rounds of asking for a leader. */
  readonly pauseMillisMin: number;
  readonly pauseMillisMax: number;
  /** So long a replica here is relied on to hear of the next leader, before this node asks around. */
  readonly electionMillisMax: number;
  /** Requests without an answer yet; more are refused as `overloaded`. */
  readonly openMax: number;
}

/** Ticks are about this coarse; an answer this little past its deadline still counts. */
const LATE_ANSWER_MILLIS_MAX = 20;

interface Open {
  readonly request: AllowRequest;
  readonly partition: number;
  readonly deadlineMillis: number;
  readonly done: AllowDone;
  attempts: number;
  /** The node that was asked last and has not answered; none: it waits for a leader. */
  asked: NodeId;
  /** An attempt may have reached a log, so "nothing was proposed" can no longer be claimed. */
  maybeProposed: boolean;
  /** Attempts at nodes that were suspected meanwhile, and may still be decided there. */
  astray: number;
  /** An attempt ended, and nobody knows how. */
  isLost: boolean;
  settled: boolean;
}

/** What waits for the leader of one partition. */
interface Queue {
  readonly search: LeaderSearch;
  waiting: Open[];
  /** The request that is asked in order to find the leader, and for how long. */
  probe: { readonly open: Open; readonly attempt: number; ticks: number } | undefined;
  /** When the replica here lost its leader. */
  leaderlessSinceMillis: number;
}

export class Router {
  readonly #init: RouterInit;
  /** partition -> whom to ask, 0 = unknown. The hot path reads this and nothing else. */
  readonly #routeOf: Int32Array;
  readonly #queues: readonly Queue[];
  /** All requests without an answer, in order of their deadlines, which is the order they came in. */
  #open: Open[] = [];
  #openCount = 0;
  /** Partitions with requests that wait, or a probe. */
  readonly #searched = new Set<number>();
  /** Partitions whose leader cannot be reached but through another node. */
  readonly #relayed = new Set<number>();

  constructor(init: RouterInit) {
    this.#init = init;
    const { placement, pauseMillisMin, pauseMillisMax } = init;
    this.#routeOf = new Int32Array(placement.partitionCount);
    const leaderlessSinceMillis = init.monotonicMillis();
    this.#queues = Array.from({ length: placement.partitionCount }, (_, partition) => ({
      search: new LeaderSearch({
        // Not this node: its replica is believed without being asked.
        candidates: () => placement.candidatesOf(partition).filter((node) => node !== init.nodeId),
        isReachable: (node) => this.#isReachable(node, partition),
        pauseMillisMin,
        pauseMillisMax,
      }),
      waiting: [],
      probe: undefined,
      leaderlessSinceMillis,
    }));
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
  allow(request: AllowRequest, done: AllowDone): void {
    const partition = this.partitionOf(request.userId);
    if (this.#openCount >= this.#init.openMax) {
      done({ kind: 'unavailable', reason: 'overloaded', proposed: false }, partition);
      return;
    }
    const deadlineMillis = this.#init.doorMillis() + this.#init.deadlineMillis;
    if (deadlineMillis <= this.#init.monotonicMillis()) {
      // It waited for too long before this process came to read it.
      done({ kind: 'unavailable', reason: 'deadline', proposed: false }, partition);
      return;
    }
    const open: Open = {
      request,
      partition,
      deadlineMillis,
      done,
      attempts: 0,
      asked: NO_NODE,
      maybeProposed: false,
      astray: 0,
      isLost: false,
      settled: false,
    };
    this.#openCount += 1;
    const route = this.#routeOf[partition] ?? NO_NODE;
    if (route === NO_NODE) this.#wait(open);
    else this.#ask(open, route);
    if (!open.settled) this.#open.push(open);
  }

  /** The replica of `partition` on this node learned of a leader in `term`, or lost it. */
  leaderChanged(partition: number, leader: NodeId, term: number): void {
    const queue = this.#queue(partition);
    const { search } = queue;
    if (leader === NO_NODE) {
      queue.leaderlessSinceMillis = this.#init.monotonicMillis();
      search.lost();
      this.#route(partition, NO_NODE);
      return;
    }
    search.told(leader, term);
    if (search.leader !== leader) return;
    // Anybody else's word would be tried out first.
    this.#route(partition, this.#isReachable(leader, partition) ? leader : NO_NODE);
    this.#advance(partition);
  }

  /** Nothing can be sent to `node` now: whoever it leads, ask another way. */
  peerDisconnected(node: NodeId): void {
    this.#avoid(node);
  }

  /** `node` is connected, and silent: ask others, what can be asked twice at once. */
  peerSuspected(node: NodeId): void {
    this.#avoid(node);
    for (const open of this.#open) {
      if (open.settled || open.asked !== node || open.request.requestId === undefined) continue;
      open.maybeProposed = true;
      open.astray += 1;
      this.#wait(open);
    }
  }

  /** `node` leads nothing any more, and ends soon. */
  peerLeaves(node: NodeId): void {
    for (const [partition, { search }] of this.#queues.entries()) {
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
    for (const partition of this.#searched) {
      const queue = this.#queue(partition);
      if (queue.probe?.open.asked === node) queue.probe = undefined;
    }
  }

  /** Call every few milliseconds: ends requests at their deadline and goes on looking for leaders. */
  tick(): void {
    this.#expire(this.#init.monotonicMillis());
    for (const partition of this.#relayed) {
      const { leader } = this.#queue(partition).search;
      if (this.#isReachable(leader, partition)) this.#route(partition, leader);
    }
    for (const partition of this.#searched) {
      const queue = this.#queue(partition);
      queue.waiting = queue.waiting.filter(({ settled }) => !settled);
      this.#watchProbe(partition, queue);
      this.#advance(partition);
      if (queue.waiting.length === 0 && queue.probe === undefined) this.#searched.delete(partition);
    }
  }

  #watchProbe(partition: number, queue: Queue): void {
    const { probe } = queue;
    if (probe === undefined) return;
    probe.ticks += 1;
    if (probe.open.settled) queue.probe = undefined;
    else if (probe.ticks >= this.#init.silentTicksMax) {
      // Not suspected, or it would be no probe any more: it is alive, and who does not lead says so at once.
      queue.probe = undefined;
      this.#found(partition, probe.open.asked);
    }
  }

  /** Refuses everything that is still open; for a graceful stop. */
  close(): void {
    this.#expire(Number.POSITIVE_INFINITY);
  }

  #expire(now: number): void {
    let count = 0;
    for (const open of this.#open) {
      if (!open.settled && open.deadlineMillis > now) break;
      count += 1;
      if (open.settled) continue;
      // Whoever has it may have proposed it: only an answer could say that nothing happened.
      const isAsking = open.asked !== NO_NODE;
      const reason = isAsking ? 'deadline' : 'no_leader';
      this.#settle(open, { kind: 'unavailable', reason, proposed: open.maybeProposed || isAsking });
    }
    if (count > 0) this.#open.splice(0, count);
  }

  #queue(partition: number): Queue {
    const queue = this.#queues[partition];
    if (queue === undefined) throw new RangeError(`there is no partition ${partition}`);
    return queue;
  }

  #isReachable(node: NodeId, partition: number): boolean {
    if (node !== this.#init.nodeId) return node !== NO_NODE && this.#init.forwarder.isReachable(node);
    return this.#init.partitions.has(partition);
  }

  /** From now on `node` is asked for this partition at once; NO_NODE: a leader is looked for. */
  #route(partition: number, node: NodeId): void {
    this.#routeOf[partition] = node;
    const { leader } = this.#queue(partition).search;
    if (node !== NO_NODE && leader !== NO_NODE && node !== leader) this.#relayed.add(partition);
    else this.#relayed.delete(partition);
  }

  /** `node` decides the requests of this partition, itself or by passing them on to its leader. */
  #found(partition: number, node: NodeId): void {
    const { search } = this.#queue(partition);
    if (search.leader === NO_NODE) search.proved(node);
    else search.found();
    this.#route(partition, node);
  }

  #denied(partition: number, node: NodeId): void {
    const { search } = this.#queue(partition);
    search.denied(node);
    // Nobody passes anything on to a leader that nobody believes in.
    const isPointless = search.leader === NO_NODE && this.#relayed.has(partition);
    if (isPointless || this.#routeOf[partition] === node) this.#route(partition, NO_NODE);
  }

  #wait(open: Open): void {
    this.#enqueue(open);
    this.#advance(open.partition);
  }

  #enqueue(open: Open): void {
    open.asked = NO_NODE;
    this.#queue(open.partition).waiting.push(open);
    this.#searched.add(open.partition);
  }

  /** Sends what waits to the leader if there is one to ask, or one request to find out. */
  #advance(partition: number): void {
    const queue = this.#queue(partition);
    if (queue.waiting.length === 0) return;
    if (this.#routeOf[partition] !== NO_NODE) {
      this.#release(queue, partition);
      return;
    }
    if (queue.probe !== undefined || this.#hearsSoon(partition, queue)) return;
    const local = this.#init.partitions.get(partition);
    if (local !== undefined) queue.search.told(local.leader, local.term);
    const target = queue.search.next(this.#init.monotonicMillis());
    if (target === NO_NODE) return;
    const open = takeProbe(queue);
    if (open === undefined) return;
    queue.probe = { open, attempt: open.attempts + 1, ticks: 0 };
    this.#ask(open, target);
  }

  /** The replica here is without a leader, but not for longer than an election takes. */
  #hearsSoon(partition: number, { leaderlessSinceMillis }: Queue): boolean {
    const { partitions, hearsOfLeaders, monotonicMillis, electionMillisMax } = this.#init;
    const local = partitions.get(partition);
    if (local === undefined || local.leader !== NO_NODE || !hearsOfLeaders(partition)) return false;
    return monotonicMillis() < leaderlessSinceMillis + electionMillisMax;
  }

  #release(queue: Queue, partition: number): void {
    const released = queue.waiting;
    queue.waiting = [];
    for (const open of released) {
      if (open.settled) continue;
      const route = this.#routeOf[partition] ?? NO_NODE;
      // One of those before was told that it is not the leader.
      if (route === NO_NODE) queue.waiting.push(open);
      else this.#ask(open, route);
    }
  }

  #ask(open: Open, target: NodeId): void {
    open.attempts += 1;
    open.asked = target;
    const { request, partition, deadlineMillis, attempts } = open;
    const { nodeId, partitions, forwarder } = this.#init;
    const done = (answer: Answer): void => this.#answered(open, target, attempts, answer);
    if (target === nodeId) {
      const local = partitions.get(partition);
      // A replica that has moved away leads no more, whatever others may say.
      if (local === undefined) done({ kind: 'notLeader', leader: NO_NODE, term: 0 });
      else local.decide(request, deadlineMillis, done);
      return;
    }
    const { leader } = this.#queue(partition).search;
    forwarder.forward({
      to: target,
      partition,
      request,
      deadlineMillis,
      relayTo: leader === target || leader === nodeId ? NO_NODE : leader,
      done,
    });
  }

  #answered(open: Open, asked: NodeId, attempt: number, answer: Answer): void {
    const { partition } = open;
    const queue = this.#queue(partition);
    const isProbe = queue.probe?.open === open && queue.probe.attempt === attempt;
    if (isProbe) queue.probe = undefined;
    this.#learn(partition, asked, answer, isProbe);
    if (!open.settled) this.#settleBy(open, attempt, answer);
    this.#advance(partition);
  }

  /** What an answer says about who leads. */
  #learn(partition: number, asked: NodeId, answer: Answer, isProbe: boolean): void {
    switch (answer.kind) {
      case 'decision':
      case 'invalid':
      case 'conflict':
        if (isProbe) this.#found(partition, asked);
        return;
      case 'notLeader':
        this.#denied(partition, asked);
        if (answer.leader === asked) return;
        if (this.#queue(partition).search.told(answer.leader, answer.term)) this.#route(partition, NO_NODE);
        return;
      case 'unavailable':
        if (isRetryable(answer)) this.#denied(partition, asked);
        else if (isProbe && meaningOf(answer) === 'leads') this.#found(partition, asked);
        return;
    }
  }

  #settleBy(open: Open, attempt: number, answer: Answer): void {
    const isLast = attempt === open.attempts && open.asked !== NO_NODE;
    if (isLast) open.asked = NO_NODE;
    // It is asked elsewhere again: whoever has it now may still grant it.
    const isOpenElsewhere = open.asked !== NO_NODE;
    if (!isLast && !(answer.kind === 'unavailable' && answer.proposed)) open.astray -= 1;
    if (isRejection(answer)) {
      if (isOpenElsewhere) return;
      // What went astray, or was lost with its connection, may arrive yet, and be granted when its window has room again:
      // then it would count although it was rejected (P4).
      if (open.astray > 0 || open.isLost) {
        this.#settle(open, { kind: 'unavailable', reason: 'unknown_outcome', proposed: true });
        return;
      }
    }
    switch (answer.kind) {
      case 'decision':
        // After a stall an answer may come before the tick that would have refused: late is late (P3).
        if (this.#init.monotonicMillis() > open.deadlineMillis + LATE_ANSWER_MILLIS_MAX) {
          this.#settle(open, { kind: 'unavailable', reason: 'deadline', proposed: true });
          return;
        }
        this.#settle(open, answer);
        return;
      case 'invalid':
      case 'conflict':
        this.#settle(open, answer);
        return;
      case 'notLeader':
        if (isLast) this.#enqueue(open);
        return;
      case 'unavailable':
        if (answer.proposed) {
          open.maybeProposed = true;
          open.isLost = true;
        }
        if (!isLast) return;
        // A repeat is harmless if nothing reached the log, or if an id makes it the same request.
        if (isRetryable(answer) && (!answer.proposed || open.request.requestId !== undefined)) {
          this.#enqueue(open);
        } else {
          this.#settle(open, { ...answer, proposed: open.maybeProposed });
        }
        return;
    }
  }

  #settle(open: Open, answer: AllowAnswer): void {
    open.settled = true;
    this.#openCount -= 1;
    open.done(answer, open.partition);
  }
}

/**
 * The youngest request, for it has most of its time left: with the oldest, one after the other would run out of it. One
 * with an id if there is any: if nobody answers it, it can be asked elsewhere.
 */
function takeProbe(queue: Queue): Open | undefined {
  queue.waiting = queue.waiting.filter(({ settled }) => !settled);
  const withId = queue.waiting.findLastIndex(({ request }) => request.requestId !== undefined);
  return queue.waiting.splice(withId, 1)[0];
}

/** Whoever got this did not charge the request. */
function isRejection(answer: Answer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed;
    case 'invalid':
    case 'conflict':
      return true;
    case 'notLeader':
    case 'unavailable':
      return false;
  }
}

type Unavailable = Extract<Answer, { kind: 'unavailable' }>;

/** Another attempt may do better. */
function isRetryable(answer: Unavailable): boolean {
  return meaningOf(answer) === 'elsewhere';
}

/** `leads`: nobody but the leader refuses a request for this, for whoever does not lead says so first. */
function meaningOf({ reason }: Unavailable): 'elsewhere' | 'leads' | 'nothing' {
  switch (reason) {
    case 'no_leader':
    case 'starting':
    case 'unknown_outcome':
      return 'elsewhere';
    case 'overloaded':
    case 'low_disk':
    case 'at_capacity':
      return 'leads';
    // Whoever gets a request too late says so without a look at who leads.
    case 'deadline':
    case 'not_member':
      return 'nothing';
  }
}
