/**
 * How nodes ask each other for decisions, from the frames they send and the questions to their partitions. No node asks
 * for a request that no client sent it, no request is relayed more than once, and many requests without a leader do not
 * cause a flood of questions.
 */
import type { AllowRequest } from '../../src/api/request.ts';
import type { UserRequest } from '../../src/api/user-request.ts';
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import { Partition } from '../../src/partition/partition.ts';
import { loggedRequests } from './logged-entries.ts';
import { check } from './story.ts';

export interface AskCheckerInit {
  readonly now: () => number;
  readonly nodes: number;
  readonly deadlineMillis: number;
  /** The longest pause between two rounds of asking all nodes. */
  readonly pauseMillis: number;
  /** A process may check this much later whether a deadline has passed. */
  readonly lateMillis: number;
  readonly partitionOf: (userId: string) => number;
}

/**
 * The most questions about one partition that a node may send within a deadline, per request: to its leader, to the
 * others when that falls silent, and once more to each when it comes back or hands over. One more for each broken
 * connection.
 */
const PER_REQUEST_MAX = 5;
/**
 * In addition, this many rounds: those with shorter pauses, since the pauses grow. Every new leader starts them again.
 */
const SHORT_ROUNDS_MAX = 12;

/** Frames of a turn (one pass of the event loop) leave at its end, and the next turn may be late. */
export const TURN_MILLIS = 5;

/** Moments, oldest first. */
class Recent {
  #times: number[] = [];

  add(atMillis: number): void {
    this.#times.push(atMillis);
  }

  countSince(sinceMillis: number): number {
    const first = this.#times.findIndex((at) => at >= sinceMillis);
    if (first !== 0) this.#times = first === -1 ? [] : this.#times.slice(first);
    return this.#times.length;
  }
}

export class AskChecker {
  readonly #init: AskCheckerInit;
  /** The clients' requests at each node: how many wait for an answer, and when the last got one. */
  readonly #asked = new Map<string, { waiting: number; answeredAt: number }>();
  /** When a node last sent a frame with this request. */
  readonly #sentAt = new Map<string, number>();
  /** When a partition of a node was last asked for this request, and did not answer at once. */
  readonly #takenAt = new Map<string, number>();
  /** Nodes to which a node may relay a request, and how often it was allowed to and has not done so. */
  readonly #permits = new Map<string, Map<NodeId, number>>();
  /** The users that each node was ever asked for. */
  readonly #users = new Set<string>();
  readonly #requests = new Map<string, Recent>();
  readonly #questions = new Map<string, Recent>();
  readonly #breaks = new Map<string, Recent>();

  constructor(init: AskCheckerInit) {
    this.#init = init;
  }

  /** A client asks `node`. */
  asked(node: NodeId, request: UserRequest): void {
    const { userId } = request;
    const key = keyOf(node, userId, idOf(request));
    const asked = this.#asked.get(key) ?? { waiting: 0, answeredAt: -Infinity };
    asked.waiting += 1;
    this.#asked.set(key, asked);
    this.concerns(node, userId);
    recentOf(this.#requests, `${node}/${this.#init.partitionOf(userId)}`).add(this.#init.now());
  }

  /** `node` got a request about this key: it may search for the leader of the key's partition. */
  concerns(node: NodeId, userId: string): void {
    this.#users.add(`${node}/${userId}`);
  }

  /** A connection to some other node broke. */
  broke(node: NodeId): void {
    recentOf(this.#breaks, String(node)).add(this.#init.now());
  }

  /** A client has its answer from `node`, or has lost it. */
  answered(node: NodeId, request: UserRequest): void {
    const asked = this.#asked.get(keyOf(node, request.userId, idOf(request)));
    if (asked === undefined) return;
    asked.waiting -= 1;
    asked.answeredAt = this.#init.now();
  }

  /** Since `sinceMillis` a frame with this request has left `node`. */
  hasSent(node: NodeId, { userId, requestId }: AllowRequest, sinceMillis: number): boolean {
    return (this.#sentAt.get(keyOf(node, userId, requestId)) ?? -Infinity) >= sinceMillis;
  }

  /** Observes the questions to the partition of a node. */
  observe(node: NodeId, app: GroupApplication): void {
    if (!(app instanceof Partition)) return;
    const decide = app.decide.bind(app);
    app.decide = (request, deadlineMillis, done) => {
      let isAnswered = false;
      decide(request, deadlineMillis, (answer) => {
        isAnswered = true;
        done(answer);
      });
      const key = keyOf(node, request.userId, idOf(request));
      if (!isAnswered) this.#takenAt.set(key, this.#init.now());
    };
  }

  /** Since `sinceMillis` a partition on `node` was asked for this, and did not answer at once. */
  hasTaken(node: NodeId, { userId, requestId }: AllowRequest, sinceMillis: number): boolean {
    return (this.#takenAt.get(keyOf(node, userId, requestId)) ?? -Infinity) >= sinceMillis;
  }

  /** `from` sends a frame of requests. */
  sent(from: NodeId, to: NodeId, payload: Uint8Array): void {
    for (const { partition, relayTo, userId, requestId, isForLeader } of questionsIn(payload)) {
      const key = keyOf(from, userId, requestId);
      check(from !== to, () => `node ${from} asks itself over the network for ${userId}`);
      this.#sentAt.set(key, this.#init.now());
      const asked = this.#asked.get(key);
      // A node may search for a leader by itself while it refuses the requests at once.
      const isOwn = asked !== undefined || (isForLeader && this.#users.has(`${from}/${userId}`));
      const permits = relayTo === 0 ? this.#permits.get(key)?.get(to) : undefined;
      const isPermitted = permits !== undefined;
      check(
        isOwn || isPermitted,
        () =>
          `node ${from} asks node ${to} for ${userId}, relay to ${relayTo}, though no client asked for it`,
      );
      // A frame may wait for the end of the turn in which a deadline passes.
      const waits = isForLeader || asked?.waiting !== 0 || this.#init.now() - asked.answeredAt <= TURN_MILLIS;
      check(
        isPermitted || waits,
        () => `node ${from} asks node ${to} for ${userId}, but no client waits for the answer any more`,
      );
      if (relayTo !== 0) {
        const there = keyOf(to, userId, requestId ?? undefined);
        const given = this.#permits.get(there) ?? new Map<NodeId, number>();
        this.#permits.set(there, given.set(relayTo, (given.get(relayTo) ?? 0) + 1));
      } else if (permits !== undefined && permits > 0) {
        // The frame may have been on its way for long: a relayed request counts at the time of its relay.
        this.#permits.get(key)?.set(to, permits - 1);
        recentOf(this.#requests, `${from}/${partition}`).add(this.#init.now());
      }
      this.#count(from, partition);
    }
  }

  #count(from: NodeId, partition: number): void {
    const { now, nodes, deadlineMillis, pauseMillis, lateMillis } = this.#init;
    const key = `${from}/${partition}`;
    const questions = recentOf(this.#questions, key);
    questions.add(now());
    const asked = questions.countSince(now() - deadlineMillis);
    // Requests that came earlier may still have been open at the beginning.
    const requests = recentOf(this.#requests, key).countSince(now() - 2 * deadlineMillis - lateMillis);
    const breaks = recentOf(this.#breaks, String(from)).countSince(now() - deadlineMillis);
    const rounds = SHORT_ROUNDS_MAX + Math.ceil(deadlineMillis / pauseMillis);
    const most = (PER_REQUEST_MAX + breaks) * requests + rounds * nodes;
    check(
      asked <= most,
      () =>
        `node ${from} asked ${asked} times for partition ${partition} within a deadline, for ${requests} requests`,
    );
  }
}

/** One request, with the fields needed here. */
interface Question {
  readonly partition: number;
  readonly relayTo: NodeId;
  readonly userId: string;
  readonly requestId: string | undefined;
  /** A peek by a rule that every partition knows. */
  readonly isForLeader: boolean;
}

/**
 * The frame holds the routes, the operators' changes, then the batch as it is in the log. Without any it is a probe.
 */
function questionsIn(payload: Uint8Array): Question[] {
  let at = 0;
  const integer = (): number => {
    const value = payload[at++] ?? 0;
    return value < 128 ? value : value - 128 + 128 * integer();
  };
  const ways = Array.from({ length: integer() }, () => {
    // After them comes the version of the rules that matched the request.
    const [, , partition, relayTo] = [integer(), integer(), integer(), integer(), integer()];
    return { partition, relayTo };
  });
  // Operators' changes are stored separately, each after its length; the others are in the batch.
  const operators = ways.length === 0 ? [] : Array.from({ length: integer() }, () => integer());
  for (let said = 0; said < operators.length; said += 1) {
    const bytes = integer();
    at += bytes;
  }
  const others = ways.filter((_, i) => !operators.includes(i));
  const peeks = others.length === 0 ? [] : Array.from({ length: integer() }, () => integer());
  const batchBytes = others.length === 0 ? 0 : integer();
  return loggedRequests(payload.subarray(at, at + batchBytes)).map(
    ({ userId, rule, requestId, isRefund }, i) => ({
      partition: others[i]?.partition ?? 0,
      relayTo: others[i]?.relayTo ?? 0,
      userId,
      isForLeader: peeks.includes(i) && rule === '0/1ms',
      requestId: peeks.includes(i) ? PEEK : isRefund === true ? refundOf(requestId ?? '') : requestId,
    }),
  );
}

/** Used in place of a request id: no client uses an id like it. */
const PEEK = 'a peek';

function idOf(request: UserRequest): string | undefined {
  if (request.ask === 'peek') return PEEK;
  return request.ask === 'refund' ? refundOf(request.requestId) : request.requestId;
}

function refundOf(requestId: string): string {
  return `refund of ${requestId}`;
}

function keyOf(node: NodeId, userId: string, requestId: string | undefined): string {
  return `${node}/${userId}/${requestId ?? ''}`;
}

function recentOf(map: Map<string, Recent>, key: string): Recent {
  let recent = map.get(key);
  if (recent === undefined) {
    recent = new Recent();
    map.set(key, recent);
  }
  return recent;
}
