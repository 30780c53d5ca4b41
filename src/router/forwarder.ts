/**
 * Sends requests to the nodes that lead their partitions, and sends answers back. Requests, and answers, of one
 * event loop turn are in one frame per peer. The receiving node decides, or answers who leads.
 *
 * A request may ask to be relayed: it names a leader that the asking node cannot reach. A node that considers the
 * same node the leader and can reach it forwards the request. One relay is enough: a leader reaches a quorum in
 * both directions, or it would lose its lead, so every follower in that quorum can relay. There are no loops, as
 * the request goes to the named node only, with the order not to relay it again. Relaying adds no new outcomes: the
 * request is proposed by that leader, under the same id, or not at all. If the relay dies, the outcome is unknown,
 * as if the leader had died.
 */
import type { ArrivalClock } from '../api/clocks.ts';
import type { SheddingOfForwarded } from '../api/api-listener.ts';
import type { Answer, UserRequest } from '../api/user-request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { Outbox } from '../../raft/outbox.ts';
import type { Partition } from '../partition/partition.ts';
import { encodeAnswers, type ForwardedAnswer } from '../wire/answers.ts';
import { type Call, Calls } from '../wire/calls.ts';
import { encodeRequests, type ForwardedRequest, rowsOfForwarded } from '../wire/requests.ts';
import { FailureDetector } from './failure-detector.ts';
import type { Done } from '../partition/waiters.ts';

/** What `Forwarder` needs. */
export interface ForwarderInit extends ArrivalClock {
  readonly nodeId: NodeId;
  readonly partitions: ReadonlyMap<number, Partition>;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'requests' | 'answers', payload: Uint8Array) => boolean;
  /** Runs `flush` soon, after the requests that have arrived are decided. */
  readonly gather: (flush: () => void) => void;
  readonly isConnected: (node: NodeId) => boolean;
  /** Load shedding for forwarded requests; absent: none are shed. */
  readonly shedding?: SheddingOfForwarded | undefined;
  /** Called when a node owes an answer for too long. */
  readonly suspected: (node: NodeId) => void;
  readonly silentTicksMax: number;
  /** First correlation id, see `Calls`. */
  readonly firstId: number;
}

/**
 * How long a node that announced its end is avoided. If it is still there after that, the announcement was late.
 */
const LEAVING_MILLIS_MAX = 10_000;
/** The maximum number of unanswered requests to other nodes; more are refused. */
const OUTSTANDING_MAX = 65_536;
/** Expired requests that are remembered, as their answers still say who leads. The oldest are dropped. */
const LATE_MAX = 4_096;

/** A request to another node. */
export interface Ask {
  readonly to: NodeId;
  readonly partition: number;
  readonly request: UserRequest;
  /** On this node's monotonic clock. */
  readonly deadlineMillis: number;
  /**
   * The leader that `to` may relay the request to, if `to` considers it the leader as well. NO_NODE: it must not
   * relay.
   */
  readonly relayTo: NodeId;
  /**
   * Called at most once. It may be called after the deadline: the caller has its answer then, but a late "not
   * leader" is still news for the search.
   */
  readonly done: Done;
}

const NOT_SENT: Answer = { kind: 'notLeader', leader: NO_NODE, term: 0 };
const LOST: Answer = { kind: 'unavailable', reason: 'unknown_outcome', proposed: true };
const NOT_HERE: Answer = NOT_SENT;
const SHED: Answer = { kind: 'unavailable', reason: 'overloaded', proposed: false };
const TOO_LATE: Answer = { kind: 'unavailable', reason: 'deadline', proposed: false };

/** The connections of one router to all other nodes. */
export class Forwarder {
  readonly #init: ForwarderInit;
  /** In order of their deadlines, which is the order of asking except for relayed requests. */
  readonly #calls: Calls<Ask, Answer>;
  /** Queued until the end of the turn. */
  readonly #unsent = new Outbox<Call<Ask>>();
  readonly #answers = new Outbox<ForwardedAnswer>();
  readonly #detector: FailureDetector;
  /** Nodes that announced their end, with the time until which they are avoided. */
  readonly #leaving = new Map<NodeId, number>();
  #scheduled = false;

  constructor(init: ForwarderInit) {
    this.#init = init;
    this.#detector = new FailureDetector({
      ask: (peer) => void init.send(peer, 'requests', encodeRequests([])),
      suspected: init.suspected,
      silentTicksMax: init.silentTicksMax,
    });
    this.#calls = new Calls<Ask, Answer>({
      firstId: init.firstId,
      outstandingMax: OUTSTANDING_MAX,
      lateMax: LATE_MAX,
      notSent: () => NOT_SENT,
      lost: LOST,
      ended: (to) => this.#detector.ended(to),
    });
  }

  /** Number of unanswered requests to other nodes. */
  get outstandingCount(): number {
    return this.#calls.outstandingCount;
  }

  /** Answers for other nodes are queued until the end of the turn. */
  get owesAnswers(): boolean {
    return !this.#answers.isEmpty;
  }

  /** A request can be sent to the node now and is likely to be answered. */
  isReachable(node: NodeId): boolean {
    return this.#init.isConnected(node) && !this.#detector.suspects(node) && !this.#leaving.has(node);
  }

  /** `peer` announced that it will end soon and might not answer new requests. */
  peerLeaves(peer: NodeId): void {
    this.#leaving.set(peer, this.#init.monotonicMillis() + LEAVING_MILLIS_MAX);
  }

  /** The process of `peer` has ended, so its announcement is over. */
  peerLost(peer: NodeId): void {
    this.#leaving.delete(peer);
  }

  /** Sends a request to another node. */
  forward(ask: Ask): void {
    const { to } = ask;
    const call = this.#calls.maybeAsk(ask, ask.deadlineMillis);
    if (call === undefined) {
      ask.done({ kind: 'unavailable', reason: 'overloaded', proposed: false });
      return;
    }
    this.#detector.asked(to);
    this.#queue(this.#unsent, to, call);
  }

  #queue<T>(outbox: Outbox<T>, to: NodeId, item: T): void {
    outbox.post(to, item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#init.gather(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const { send, monotonicMillis } = this.#init;
    this.#answers.flush((to, answers) => {
      for (const part of inParts(answers, sizeOf)) send(to, 'answers', encodeAnswers(part));
    });
    const unsent: [NodeId, readonly Call<Ask>[]][] = [];
    this.#unsent.flush((to, calls) => unsent.push([to, calls]));
    const nowMillis = monotonicMillis();
    for (const [, calls] of unsent) for (const call of calls) call.isSent = true;
    for (const [to, calls] of unsent) {
      for (const part of inParts(calls, rowsOfCall)) {
        const isSent = send(to, 'requests', encodeRequests(part.map((call) => requestOf(call, nowMillis))));
        if (!isSent) for (const call of part) this.#calls.notSent(call);
      }
    }
  }

  /** The connection to `peer` broke. Requests sent over it may or may not be decided. */
  peerDisconnected(peer: NodeId): void {
    this.#unsent.keep((_call, to) => to !== peer);
    this.#calls.disconnected(peer);
    this.#detector.disconnected(peer);
    this.#leaving.delete(peer);
  }

  /** Call once per tick: drops expired requests and detects silent nodes. */
  tick(): void {
    const now = this.#init.monotonicMillis();
    this.#calls.expire(now);
    for (const [peer, untilMillis] of this.#leaving) if (untilMillis <= now) this.#leaving.delete(peer);
    this.#detector.tick();
  }

  /** Handles the requests of another node. An empty list is a ping. */
  receiveRequests(from: NodeId, requests: readonly ForwardedRequest[]): void {
    const now = this.#init.monotonicMillis();
    const listenerMillis = this.#init.listenerMillis();
    if (requests.length === 0) this.#init.send(from, 'answers', encodeAnswers([]));
    for (const asked of requests) {
      const { id, budgetMillis, partition, relayTo, request } = asked;
      const deadlineMillis = Math.floor(listenerMillis + budgetMillis);
      const local = this.#init.partitions.get(partition);
      if (local === undefined || deadlineMillis <= now) {
        this.#answer(from, id, local === undefined ? NOT_HERE : TOO_LATE);
        continue;
      }
      // Operators' requests are few, and may be what ends the overload; so they are not shed.
      const mayShed = request.ask !== 'customer' && local.leader === this.#init.nodeId;
      // A node that does not lead must say so and nothing else; a refusal would hide that.
      const { shedding } = this.#init;
      if (mayShed && shedding?.maybeRefuseForwarded() === true) {
        this.#answer(from, id, SHED);
        continue;
      }
      // Hot path: one closure per request.
      local.decide(request, deadlineMillis, (answer) => {
        if (mayShed) this.#init.shedding?.leftForwarded();
        const isTheirs =
          answer.kind === 'notLeader' && answer.leader === relayTo && this.#mayRelay(asked, from);
        if (isTheirs) this.#relay(asked, deadlineMillis, from);
        else this.#answer(from, asked.id, answer);
      });
    }
  }

  #answer(to: NodeId, id: number, answer: Answer): void {
    this.#queue(this.#answers, to, { id, answer });
  }

  #mayRelay({ relayTo }: ForwardedRequest, from: NodeId): boolean {
    const isOther = relayTo !== NO_NODE && relayTo !== from && relayTo !== this.#init.nodeId;
    return isOther && this.isReachable(relayTo);
  }

  #relay({ id, partition, relayTo, request }: ForwardedRequest, deadlineMillis: number, from: NodeId): void {
    const done = (answer: Answer): void => this.#answer(from, id, answer);
    this.forward({ to: relayTo, partition, request, deadlineMillis, relayTo: NO_NODE, done });
  }

  /** Handles answers; an answer counts only if it comes from the node that was asked. */
  receiveAnswers(from: NodeId, answers: readonly ForwardedAnswer[]): void {
    for (const { id, answer } of answers) this.#calls.answered(from, id, answer);
    this.#detector.heard(from);
  }
}

/** Rows per frame: far below the size limit of a frame, with the largest requests and answers too. */
const ITEMS_PER_FRAME_MAX = 4_096;

/** @param sizeOf how many rows an item takes */
function inParts<T>(items: readonly T[], sizeOf: (item: T) => number): (readonly T[])[] {
  const parts: (readonly T[])[] = [];
  let size = 0;
  let from = 0;
  for (let i = 0; i < items.length; i += 1) {
    const more = sizeOf(items[i]!);
    if (i > from && size + more > ITEMS_PER_FRAME_MAX) {
      parts.push(items.slice(from, i));
      from = i;
      size = 0;
    }
    size += more;
  }
  parts.push(from === 0 ? items : items.slice(from));
  return parts;
}

function rowsOfCall({ question }: Call<Ask>): number {
  return rowsOfForwarded(question.request);
}

/** The answer to a peek under all rules contains that many limits. */
function sizeOf({ answer }: ForwardedAnswer): number {
  return answer.kind === 'keyStatus' ? 1 + answer.keyStatus.limits.length : 1;
}

/** In its form on the wire. It has a time budget and no deadline, as clocks differ. */
function requestOf({ id, question }: Call<Ask>, nowMillis: number): ForwardedRequest {
  const { partition, relayTo, request, deadlineMillis } = question;
  const budgetMillis = Math.max(0, Math.floor(deadlineMillis - nowMillis));
  return { id, budgetMillis, partition, relayTo, request };
}
