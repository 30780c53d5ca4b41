/**
 * Carries requests to the node that leads their partition, and answers back. Requests and answers of one turn
 * share a frame per peer. The receiving node decides, or says who leads.
 *
 * Or it passes the request on, if the asking node asks for that: it names the leader that it cannot reach itself, and
 * whoever believes in the same leader and can reach it asks in its place. One relay is enough: a leader reaches a
 * quorum both ways, or it would not stay one, so every follower in that quorum is such a relay. And it cannot become a
 * loop: the request goes to the one node named, with the order not to pass it on. A relay adds nothing to what can
 * happen to a request: it is proposed by that leader or not at all, under the same id; a relay that dies leaves its
 * outcome unknown, like a leader that dies.
 */
import type { SheddingOfForwarded } from '../api/shedding.ts';
import type { Answer, UserRequest } from '../api/user-request.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { Outbox } from '../../raft/outbox.ts';
import type { Partition } from '../partition/partition.ts';
import { encodeAnswers, type ForwardedAnswer } from '../wire/answers.ts';
import { type Call, Calls } from '../wire/calls.ts';
import { encodeRequests, type ForwardedRequest, rowsOfForwarded } from '../wire/requests.ts';
import { FailureDetector } from './failure-detector.ts';
import type { Done } from '../partition/waiters.ts';

export interface ForwarderInit {
  readonly nodeId: NodeId;
  readonly partitions: ReadonlyMap<number, Partition>;
  readonly monotonicMillis: () => number;
  /** On the same clock: what is received now came after this. */
  readonly doorMillis: () => number;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'requests' | 'answers', payload: Uint8Array) => boolean;
  /** Runs `flush` soon, when what has come by then is decided. */
  readonly gather: (flush: () => void) => void;
  readonly isConnected: (node: NodeId) => boolean;
  /** What other nodes forward is refused by it as what comes through a door; absent: nothing is. */
  readonly shedding?: SheddingOfForwarded | undefined;
  /** A node that has requests, or was asked for a sign of life, is silent for too long: ask others. */
  readonly suspected: (node: NodeId) => void;
  readonly silentTicksMax: number;
  /** Where correlation ids start: see `Calls`. */
  readonly firstId: number;
}

/** Who says that it leaves has ended by then. One that is still there is asked again: what it said may have come late. */
const LEAVING_MILLIS_MAX = 10_000;
/** Requests on their way to other nodes; more are refused. */
const OUTSTANDING_MAX = 65_536;
/** Requests that nobody waits for any more, and whose answers still tell who leads. The oldest are forgotten. */
const LATE_MAX = 4_096;

/** A request on its way to another node. */
export interface Ask {
  readonly to: NodeId;
  readonly partition: number;
  readonly request: UserRequest;
  /** On this node's monotonic clock. */
  readonly deadlineMillis: number;
  /** `to` may pass the request on to this node, if it leads as far as `to` knows. NO_NODE: it must not. */
  readonly relayTo: NodeId;
  /**
   * Called at most once, perhaps after the deadline: then nobody waits for the decision, but a node that is slow to say
   * that it does not lead would be asked for ever if nobody listened.
   */
  readonly done: Done;
}

const NOT_SENT: Answer = { kind: 'notLeader', leader: NO_NODE, term: 0 };
const LOST: Answer = { kind: 'unavailable', reason: 'unknown_outcome', proposed: true };
const NOT_HERE: Answer = NOT_SENT;
const SHED: Answer = { kind: 'unavailable', reason: 'overloaded', proposed: false };
const TOO_LATE: Answer = { kind: 'unavailable', reason: 'deadline', proposed: false };

export class Forwarder {
  readonly #init: ForwarderInit;
  /** By their deadlines, which is the order of asking but for relays: those are younger than they seem. */
  readonly #calls: Calls<Ask, Answer>;
  /** For the end of the turn. */
  readonly #unsent = new Outbox<Call<Ask>>();
  readonly #answers = new Outbox<ForwardedAnswer>();
  readonly #detector: FailureDetector;
  /** They lead nothing any more, and end soon; until when that is believed. */
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

  /** Requests that were asked elsewhere and have no answer yet. */
  get outstandingCount(): number {
    return this.#calls.outstandingCount;
  }

  /** Answers for other nodes wait for the end of the turn. */
  get owesAnswers(): boolean {
    return !this.#answers.isEmpty;
  }

  /** Can a request be sent there now, with hope of an answer? */
  isReachable(node: NodeId): boolean {
    return this.#init.isConnected(node) && !this.#detector.suspects(node) && !this.#leaving.has(node);
  }

  /** `peer` is about to end: what it is asked now might not be answered. */
  peerLeaves(peer: NodeId): void {
    this.#leaving.set(peer, this.#init.monotonicMillis() + LEAVING_MILLIS_MAX);
  }

  /** Whatever `peer` said, its process has ended. */
  peerLost(peer: NodeId): void {
    this.#leaving.delete(peer);
  }

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

  /** The connection to `peer` broke. What it was asked may or may not have been decided. */
  peerDisconnected(peer: NodeId): void {
    this.#unsent.keep((_call, to) => to !== peer);
    this.#calls.disconnected(peer);
    this.#detector.disconnected(peer);
    this.#leaving.delete(peer);
  }

  /** Time passed: sets aside requests that nobody waits for any more, and looks who is silent. */
  tick(): void {
    const now = this.#init.monotonicMillis();
    this.#calls.expire(now);
    for (const [peer, untilMillis] of this.#leaving) if (untilMillis <= now) this.#leaving.delete(peer);
    this.#detector.tick();
  }

  /** Requests of another node. None at all: it asks for a sign of life. */
  receiveRequests(from: NodeId, requests: readonly ForwardedRequest[]): void {
    const now = this.#init.monotonicMillis();
    const doorMillis = this.#init.doorMillis();
    if (requests.length === 0) this.#init.send(from, 'answers', encodeAnswers([]));
    for (const asked of requests) {
      const { id, budgetMillis, partition, relayTo, request } = asked;
      const deadlineMillis = Math.floor(doorMillis + budgetMillis);
      const local = this.#init.partitions.get(partition);
      if (local === undefined || deadlineMillis <= now) {
        this.#answer(from, id, local === undefined ? NOT_HERE : TOO_LATE);
        continue;
      }
      // What operators say is little, and may be what ends the load.
      const mayShed = request.ask !== 'customer' && local.leader === this.#init.nodeId;
      // Who does not lead says that, and nothing else: nobody would look for the leader any more.
      const { shedding } = this.#init;
      if (mayShed && shedding?.maybeRefuseForwarded() === true) {
        this.#answer(from, id, SHED);
        continue;
      }
      // Most requests come here: one closure for each.
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

  /** Answers of another node, believed only if that node was asked. */
  receiveAnswers(from: NodeId, answers: readonly ForwardedAnswer[]): void {
    for (const { id, answer } of answers) this.#calls.answered(from, id, answer);
    this.#detector.heard(from);
  }
}

/** Far below the bound of a frame, whatever the requests hold, and the answers in as many limits. */
const ITEMS_PER_FRAME_MAX = 4_096;

/** @param sizeOf how many items one of them is worth */
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

/** A look under all rules is answered by as many limits. */
function sizeOf({ answer }: ForwardedAnswer): number {
  return answer.kind === 'standing' ? 1 + answer.standing.limits.length : 1;
}

/** As it travels: the other node's clock is another one. */
function requestOf({ id, question }: Call<Ask>, nowMillis: number): ForwardedRequest {
  const { partition, relayTo, request, deadlineMillis } = question;
  const budgetMillis = Math.max(0, Math.floor(deadlineMillis - nowMillis));
  return { id, budgetMillis, partition, relayTo, request };
}
