/** Helper: a router with scripted partitions, forwarder and clock. */
import type { AllowRequest } from '../../src/api/request.ts';
import type { Answer } from '../../src/api/user-request.ts';
import type { Partition } from '../../src/partition/partition.ts';
import type { Ask, Forwarder } from '../../src/router/forwarder.ts';
import type { AllowAnswer } from '../../src/api/answer.ts';
import { decisionOf } from '../api/decision-of.ts';
import { Router } from '../../src/router/router.ts';
import type { Done } from '../../src/partition/waiters.ts';

export const SELF = 1;
export const DEADLINE_MILLIS = 1_000;
export const TICK_MILLIS = 10;
export const SILENT_TICKS_MAX = 30;
export const PAUSE_MILLIS_MAX = 160;
/** Pauses of 10, 20, 40, 80 and then 160 ms. */
export const ROUNDS_PER_DEADLINE_MAX = 11;
export const ELECTION_MILLIS_MAX = 400;
export const CHECK_MILLIS = 200;
export const CHECK_PAUSE_TICKS = 10;

export const GRANT: Answer = { kind: 'decision', decision: decisionOf() };

export function unavailable(
  reason: Extract<Answer, { kind: 'unavailable' }>['reason'],
  proposed: boolean,
): Extract<Answer, { kind: 'unavailable' }> {
  return { kind: 'unavailable', reason, proposed };
}

/** @param term by default later than all terms that a bench begins with */
export function notLeader(leader: number, term = leader === 0 ? 0 : 50): Answer {
  return { kind: 'notLeader', leader, term };
}

/** A request on its way to a node, for a partition. */
export interface Asked extends Omit<Ask, 'done'> {
  readonly answer: Done;
}

/** The immediate answer of a node; undefined keeps the request open. */
export type Reply = (asked: Asked) => Answer | undefined;

export class FakePartition {
  leader = 0;
  term = 0;
  readonly asked: Asked[] = [];
  readonly #partition: number;
  reply: Reply = () => undefined;

  constructor(partition: number) {
    this.#partition = partition;
  }

  decide(request: AllowRequest, deadlineMillis: number, done: Done): void {
    const asked: Asked = {
      to: SELF,
      partition: this.#partition,
      request,
      deadlineMillis,
      relayTo: 0,
      answer: done,
    };
    this.asked.push(asked);
    const answer = this.reply(asked);
    if (answer !== undefined) done(answer);
  }
}

/** An answer as a listener gets it. */
export interface Reported {
  readonly answers: AllowAnswer[];
  readonly partitions: number[];
}

export interface BenchOptions {
  readonly local?: readonly number[];
  readonly openMax?: number;
  readonly nodes?: number;
}

/**
 * Node 1 of `nodes`, holding `local` of 8 partitions; every partition has all nodes as replicas, in order. User
 * `5:x` belongs to partition 5.
 */
export class RouterBench {
  nowMillis = 10_000;
  /** The arrival time of the next request. */
  ageMillis = 0;
  readonly others: readonly number[];
  readonly connected: Set<number>;
  readonly suspected = new Set<number>();
  /** The nodes whose reachability the router asked for. */
  readonly lookedUp = new Set<number>();
  #term = 0;
  readonly local = new Map<number, FakePartition>();
  readonly forwarded: Asked[] = [];
  reply: Reply = () => undefined;
  readonly router: Router;

  constructor({ local = [0, 1], openMax = 1_000, nodes = 3 }: BenchOptions = {}) {
    this.others = Array.from({ length: nodes - 1 }, (_, i) => i + 2);
    this.connected = new Set(this.others);
    for (const partition of local) this.local.set(partition, new FakePartition(partition));
    const forward: Forwarder['forward'] = ({ done, ...ask }) => {
      const asked: Asked = { ...ask, answer: done };
      this.forwarded.push(asked);
      const answer = this.reply(asked);
      if (answer !== undefined) done(answer);
    };
    const isReachable: Forwarder['isReachable'] = (node) => {
      this.lookedUp.add(node);
      return this.connected.has(node) && !this.suspected.has(node);
    };
    this.router = new Router({
      nodeId: SELF,
      placement: {
        partitionCount: 8,
        candidatesOf: (partition) => (this.local.has(partition) ? [SELF, ...this.others] : this.others),
      },
      partitions: this.local as ReadonlyMap<number, unknown> as ReadonlyMap<number, Partition>,
      hearsOfLeaders: (partition) => this.local.has(partition),
      forwarder: { forward, isReachable } as Forwarder,
      partitionOf: (userId) => Number.parseInt(userId, 10) % 8,
      monotonicMillis: () => this.nowMillis,
      listenerMillis: () => this.nowMillis - this.ageMillis,
      deadlineMillis: DEADLINE_MILLIS,
      silentTicksMax: SILENT_TICKS_MAX,
      pauseMillisMin: TICK_MILLIS,
      pauseMillisMax: PAUSE_MILLIS_MAX,
      electionMillisMax: ELECTION_MILLIS_MAX,
      breakerTicksMin: DEADLINE_MILLIS / TICK_MILLIS,
      searchMillis: CHECK_MILLIS,
      searchPauseTicks: CHECK_PAUSE_TICKS,
      openMax,
    });
  }

  /** The replica of `partition` on this node reports the leader; each leader in a term of its own. */
  leads(partition: number, leader: number, term = leader === 0 ? 0 : (this.#term += 1)): void {
    const local = this.local.get(partition);
    if (local !== undefined) Object.assign(local, { leader, term });
    this.router.leaderChanged(partition, leader, term);
  }

  /** The forwarder reports that `node` is silent. */
  suspect(node: number): void {
    this.suspected.add(node);
    this.router.peerSuspected(node);
  }

  /** `node` says that it leads nothing and is about to end. */
  leave(node: number): void {
    this.suspected.add(node);
    this.router.peerLeaves(node);
  }

  partition(id: number): FakePartition {
    const partition = this.local.get(id);
    if (partition === undefined) throw new Error(`partition ${id} is not local`);
    return partition;
  }

  allow(userId: string, more: Partial<AllowRequest> = {}): Reported {
    const reported: Reported = { answers: [], partitions: [] };
    this.router.ask({ userId, ...more }, (answer, partition) => {
      reported.answers.push(answer);
      reported.partitions.push(partition);
    });
    return reported;
  }

  tick(millis: number = TICK_MILLIS): void {
    this.nowMillis += millis;
    this.router.tick();
  }

  ticks(count: number): void {
    for (let i = 0; i < count; i += 1) this.tick();
  }

  /** Ticks until every deadline has passed. */
  runOut(): void {
    for (let elapsed = 0; elapsed <= DEADLINE_MILLIS; elapsed += TICK_MILLIS) this.tick();
  }

  /** Receivers of the requests, in order. */
  get targets(): number[] {
    return this.forwarded.map(({ to }) => to);
  }
}
