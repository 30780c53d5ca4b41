/** A router between partitions and a forwarder that the test plays, on a clock the test turns. */
import type { AllowRequest } from '../../src/limiter/request.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { Answer } from '../../src/partition/answer.ts';
import type { Done, Partition } from '../../src/partition/partition.ts';
import type { Forwarder } from '../../src/router/forwarder.ts';
import { type RoutedAnswer, Router } from '../../src/router/router.ts';

export const SELF = 1;
export const DEADLINE_MILLIS = 1_000;
export const TICK_MILLIS = 10;

export function decisionOf(changes: Partial<Decision> = {}): Decision {
  return {
    allowed: true,
    ruleId: 'default',
    limit: 100,
    windowMillis: 60_000,
    remaining: 99,
    retryAfterMillis: 0,
    resetMillis: 60_000,
    decided: { term: 2, index: 17, timeMillis: 1_700_000_000_000 },
    ...changes,
  };
}

export const GRANT: Answer = { kind: 'decision', decision: decisionOf() };

export function unavailable(
  reason: Extract<Answer, { kind: 'unavailable' }>['reason'],
  proposed: boolean,
): Extract<Answer, { kind: 'unavailable' }> {
  return { kind: 'unavailable', reason, proposed };
}

export function notLeader(leader: number): Answer {
  return { kind: 'notLeader', leader };
}

/** One question on its way: to a node, about a partition. */
export interface Asked {
  readonly to: number;
  readonly partition: number;
  readonly request: AllowRequest;
  readonly deadlineMillis: number;
  readonly answer: Done;
}

/** How a node answers at once; undefined keeps the question open. */
export type Reply = (asked: Asked) => Answer | undefined;

export class FakePartition {
  leader = 0;
  readonly asked: Asked[] = [];
  readonly #partition: number;
  reply: Reply = () => undefined;

  constructor(partition: number) {
    this.#partition = partition;
  }

  decide(request: AllowRequest, deadlineMillis: number, done: Done): void {
    const asked: Asked = { to: SELF, partition: this.#partition, request, deadlineMillis, answer: done };
    this.asked.push(asked);
    const answer = this.reply(asked);
    if (answer !== undefined) done(answer);
  }
}

/** What a front door was told. */
export interface Told {
  readonly answers: RoutedAnswer[];
  readonly partitions: number[];
}

/**
 * Node 1 of `nodes`, holding `local` of 8 partitions; every partition has all nodes as replicas, in order. User
 * `5:x` belongs to partition 5.
 */
export class RouterBench {
  nowMillis = 10_000;
  readonly connected = new Set<number>([2, 3]);
  readonly local = new Map<number, FakePartition>();
  readonly forwarded: Asked[] = [];
  reply: Reply = () => undefined;
  readonly router: Router;

  constructor({ local = [0, 1], openMax = 100 }: { local?: readonly number[]; openMax?: number } = {}) {
    for (const partition of local) this.local.set(partition, new FakePartition(partition));
    const forward: Forwarder['forward'] = (to, partition, request, deadlineMillis, done) => {
      const asked: Asked = { to, partition, request, deadlineMillis, answer: done };
      this.forwarded.push(asked);
      const answer = this.reply(asked);
      if (answer !== undefined) done(answer);
    };
    this.router = new Router({
      nodeId: SELF,
      placement: {
        partitionCount: 8,
        candidatesOf: (partition) => (this.local.has(partition) ? [SELF, 2, 3] : [2, 3]),
      },
      partitions: this.local as ReadonlyMap<number, unknown> as ReadonlyMap<number, Partition>,
      hearsOfLeaders: (partition) => this.local.has(partition),
      forwarder: { forward } as Forwarder,
      isConnected: (node) => this.connected.has(node),
      hash: (userId) => Number.parseInt(userId, 10),
      monotonicMillis: () => this.nowMillis,
      deadlineMillis: DEADLINE_MILLIS,
      openMax,
    });
  }

  partition(id: number): FakePartition {
    const partition = this.local.get(id);
    if (partition === undefined) throw new Error(`partition ${id} is not local`);
    return partition;
  }

  allow(userId: string, more: Partial<AllowRequest> = {}): Told {
    const told: Told = { answers: [], partitions: [] };
    this.router.allow({ userId, ...more }, (answer, partition) => {
      told.answers.push(answer);
      told.partitions.push(partition);
    });
    return told;
  }

  tick(millis: number = TICK_MILLIS): void {
    this.nowMillis += millis;
    this.router.tick();
  }

  /** Ticks until every deadline has passed. */
  runOut(): void {
    for (let elapsed = 0; elapsed <= DEADLINE_MILLIS; elapsed += TICK_MILLIS) this.tick();
  }

  /** To whom questions went, in order. */
  get targets(): number[] {
    return this.forwarded.map(({ to }) => to);
  }
}
