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
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { Receipt } from '../limiter/decision.ts';
import type { AllowRequest } from '../limiter/request.ts';
import { FINGERPRINT_FIELDS } from '../limiter/fingerprint.ts';
import { type Answer, UNAVAILABLE_REASONS } from '../partition/answer.ts';
import type { Done, Partition } from '../partition/partition.ts';
import { array, Fields, pack, unpack } from '../wire/fields.ts';
import { FailureDetector } from './failure-detector.ts';

export interface ForwarderInit {
  readonly nodeId: NodeId;
  readonly partitions: ReadonlyMap<number, Partition>;
  readonly monotonicMillis: () => number;
  /** On the same clock: what is received now came after this. */
  readonly doorMillis: () => number;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'requests' | 'answers', payload: Uint8Array) => boolean;
  /** Runs `flush` soon, after what is already queued. */
  readonly defer: (flush: () => void) => void;
  readonly isConnected: (node: NodeId) => boolean;
  /** A node that has requests, or was asked for a sign of life, is silent for too long: ask others. */
  readonly suspected: (node: NodeId) => void;
  readonly silentTicksMax: number;
  /** Where correlation ids start; random, so that answers meant for an earlier process of this node match nothing. */
  readonly firstId: number;
}

/** Requests on their way to other nodes; more are refused. */
const OUTSTANDING_MAX = 65_536;
/** Requests that nobody waits for any more, and whose answers still tell who leads. The oldest are forgotten. */
const LATE_MAX = 4_096;
const ANSWER_KINDS = [
  'decision',
  'invalid',
  'unavailable',
  'notLeader',
  'conflict',
] as const satisfies readonly Answer['kind'][];

/** A request on its way to another node. */
export interface Ask {
  readonly to: NodeId;
  readonly partition: number;
  readonly request: AllowRequest;
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

/** Where a request on the wire says how long its answer is waited for; until then the deadline stands there. */
const BUDGET = 1;
const NOT_SENT: Answer = { kind: 'notLeader', leader: NO_NODE, term: 0 };
const NOT_HERE: Answer = NOT_SENT;
const TOO_LATE: Answer = { kind: 'unavailable', reason: 'deadline', proposed: false };
/** Asks for a sign of life, and gives one. */
const NOTHING = pack([]);

export class Forwarder {
  readonly #init: ForwarderInit;
  /** In order of sending, so oldest first, but for relays, which are younger than they seem. */
  readonly #outstanding = new Map<number, Ask>();
  /** Past their deadlines, oldest first. */
  readonly #late = new Map<number, Ask>();
  readonly #requests = new Map<NodeId, unknown[][]>();
  readonly #answers = new Map<NodeId, unknown[][]>();
  readonly #detector: FailureDetector;
  /** They lead nothing any more, and end soon. */
  readonly #leaving = new Set<NodeId>();
  #nextId: number;
  #scheduled = false;

  constructor(init: ForwarderInit) {
    this.#init = init;
    this.#nextId = init.firstId;
    this.#detector = new FailureDetector({
      ask: (peer) => void init.send(peer, 'requests', NOTHING),
      suspected: init.suspected,
      silentTicksMax: init.silentTicksMax,
    });
  }

  get outstandingCount(): number {
    return this.#outstanding.size;
  }

  /** Answers for other nodes wait for the end of the turn. */
  get owesAnswers(): boolean {
    return this.#answers.size > 0;
  }

  /** Can a request be sent there now, with hope of an answer? */
  isReachable(node: NodeId): boolean {
    return this.#init.isConnected(node) && !this.#detector.suspects(node) && !this.#leaving.has(node);
  }

  /** `peer` is about to end: what it is asked now might not be answered. */
  peerLeaves(peer: NodeId): void {
    this.#leaving.add(peer);
  }

  /** Whatever `peer` said, its process has ended. */
  peerLost(peer: NodeId): void {
    this.#leaving.delete(peer);
  }

  forward(ask: Ask): void {
    if (this.#outstanding.size >= OUTSTANDING_MAX) {
      ask.done({ kind: 'unavailable', reason: 'overloaded', proposed: false });
      return;
    }
    const id = this.#nextId;
    this.#nextId += 1;
    this.#outstanding.set(id, ask);
    this.#detector.asked(ask.to);
    const { userId, ruleId, cost, timestampMillis, requestId } = ask.request;
    this.#queue(this.#requests, ask.to, [
      id,
      ask.deadlineMillis,
      ask.partition,
      ask.relayTo,
      userId,
      ruleId ?? null,
      cost ?? null,
      timestampMillis ?? null,
      requestId ?? null,
    ]);
  }

  #queue(queues: Map<NodeId, unknown[][]>, to: NodeId, item: unknown[]): void {
    const queue = queues.get(to);
    if (queue === undefined) queues.set(to, [item]);
    else queue.push(item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#init.defer(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    for (const [to, answers] of this.#answers) {
      for (const part of inParts(answers)) this.#init.send(to, 'answers', pack(part));
    }
    this.#answers.clear();
    const requests = [...this.#requests];
    this.#requests.clear();
    const now = this.#init.monotonicMillis();
    for (const [to, queue] of requests) {
      for (const item of queue) item[BUDGET] = Math.max(0, Math.floor(Number(item[BUDGET]) - now));
      for (const part of inParts(queue)) {
        if (!this.#init.send(to, 'requests', pack(part))) this.#notSent(part);
      }
    }
  }

  /** The frame never left: certainly nothing was proposed. */
  #notSent(queue: readonly unknown[][]): void {
    for (const [id] of queue) this.#finish(Number(id), NOT_SENT);
  }

  /** `from` undefined: it is our own verdict. */
  #finish(id: number, answer: Answer, from?: NodeId): void {
    const ask = this.#outstanding.get(id) ?? this.#late.get(id);
    if (ask === undefined || (from !== undefined && ask.to !== from)) return;
    if (this.#outstanding.delete(id)) this.#detector.ended(ask.to);
    this.#late.delete(id);
    ask.done(answer);
  }

  /** The connection to `peer` broke. What it was asked may or may not have been decided. */
  peerDisconnected(peer: NodeId): void {
    const unsent = this.#requests.get(peer) ?? [];
    this.#requests.delete(peer);
    const sent = new Set([...this.#outstanding].flatMap(([id, { to }]) => (to === peer ? [id] : [])));
    for (const [id] of unsent) sent.delete(Number(id));
    // Whoever is told may ask here again at once, and that has not left either.
    this.#notSent(unsent);
    for (const id of sent)
      this.#finish(id, { kind: 'unavailable', reason: 'unknown_outcome', proposed: true });
    for (const [id, { to }] of this.#late) if (to === peer) this.#late.delete(id);
    this.#detector.disconnected(peer);
    this.#leaving.delete(peer);
  }

  /** Time passed: sets aside requests that nobody waits for any more, and looks who is silent. */
  tick(): void {
    const now = this.#init.monotonicMillis();
    for (const [id, ask] of this.#outstanding) {
      if (ask.deadlineMillis > now) break;
      this.#outstanding.delete(id);
      this.#detector.ended(ask.to);
      this.#late.set(id, ask);
    }
    for (const id of this.#late.keys()) {
      if (this.#late.size <= LATE_MAX) break;
      this.#late.delete(id);
    }
    this.#detector.tick();
  }

  /** Requests from another node. Throws FrameError if they are malformed. */
  receiveRequests(from: NodeId, payload: Uint8Array): void {
    const now = this.#init.monotonicMillis();
    const doorMillis = this.#init.doorMillis();
    const items = array(unpack(payload), 'requests');
    if (items.length === 0) this.#init.send(from, 'answers', NOTHING);
    for (const item of items) {
      const fields = new Fields(item);
      const id = fields.integer('id');
      const deadlineMillis = doorMillis + fields.integer('budgetMillis');
      const partition = fields.integer('partition');
      const relayTo = fields.integer('relayTo');
      const request: AllowRequest = {
        userId: fields.string('userId'),
        ruleId: fields.optionalString('ruleId'),
        cost: fields.optionalInteger('cost'),
        timestampMillis: fields.optionalInteger('timestampMillis'),
        requestId: fields.optionalString('requestId'),
      };
      const done = (answer: Answer): void => this.#queue(this.#answers, from, [id, ...encodeAnswer(answer)]);
      const local = this.#init.partitions.get(partition);
      if (local === undefined || deadlineMillis <= now) {
        done(local === undefined ? NOT_HERE : TOO_LATE);
        continue;
      }
      const mayRelay = relayTo !== NO_NODE && relayTo !== from && relayTo !== this.#init.nodeId;
      local.decide(request, deadlineMillis, (answer) => {
        const isTheirs = mayRelay && answer.kind === 'notLeader' && answer.leader === relayTo;
        if (!isTheirs || !this.isReachable(relayTo)) done(answer);
        else this.forward({ to: relayTo, partition, request, deadlineMillis, relayTo: NO_NODE, done });
      });
    }
  }

  /** Answers from another node, believed only if that node was asked. Throws FrameError if they are malformed. */
  receiveAnswers(from: NodeId, payload: Uint8Array): void {
    for (const item of array(unpack(payload), 'answers')) {
      const fields = new Fields(item);
      const id = fields.integer('id');
      this.#finish(id, decodeAnswer(fields), from);
    }
    this.#detector.heard(from);
  }
}

/** Far below the bound of a frame, whatever the requests hold. */
const ITEMS_PER_FRAME_MAX = 4_096;

function inParts(items: unknown[][]): unknown[][][] {
  if (items.length <= ITEMS_PER_FRAME_MAX) return [items];
  const parts: unknown[][][] = [];
  for (let i = 0; i < items.length; i += ITEMS_PER_FRAME_MAX)
    parts.push(items.slice(i, i + ITEMS_PER_FRAME_MAX));
  return parts;
}

function encodeAnswer(answer: Answer): unknown[] {
  const kind = ANSWER_KINDS.indexOf(answer.kind);
  switch (answer.kind) {
    case 'decision': {
      const { allowed, ruleId, limit, windowMillis, remaining, retryAfterMillis, resetMillis } =
        answer.decision;
      const { term, index, position = null, timeMillis } = answer.decision.decided;
      const waits = [limit, windowMillis, remaining, retryAfterMillis, resetMillis];
      return [kind, allowed, ruleId, ...waits, term, index, position, timeMillis];
    }
    case 'invalid':
      return [kind, answer.field, answer.message];
    case 'conflict':
      return [kind, FINGERPRINT_FIELDS.indexOf(answer.field), answer.message];
    case 'unavailable':
      return [kind, UNAVAILABLE_REASONS.indexOf(answer.reason), answer.proposed];
    case 'notLeader':
      return [kind, answer.leader, answer.term];
  }
}

function decodeAnswer(fields: Fields): Answer {
  const kind = fields.oneOf(ANSWER_KINDS, 'kind');
  switch (kind) {
    case 'decision':
      return {
        kind,
        decision: {
          allowed: fields.boolean('allowed'),
          ruleId: fields.string('ruleId'),
          limit: fields.integer('limit'),
          windowMillis: fields.integer('windowMillis'),
          remaining: fields.integer('remaining'),
          retryAfterMillis: fields.integer('retryAfterMillis'),
          resetMillis: fields.integer('resetMillis'),
          decided: decodeReceipt(fields),
        },
      };
    case 'invalid':
      return { kind, field: fields.string('field'), message: fields.string('message') };
    case 'conflict':
      return { kind, field: fields.oneOf(FINGERPRINT_FIELDS, 'field'), message: fields.string('message') };
    case 'unavailable':
      return {
        kind,
        reason: fields.oneOf(UNAVAILABLE_REASONS, 'reason'),
        proposed: fields.boolean('proposed'),
      };
    case 'notLeader':
      return { kind, leader: fields.integer('leader'), term: fields.integer('term') };
  }
}

function decodeReceipt(fields: Fields): Receipt {
  const term = fields.integer('term');
  const index = fields.integer('index');
  const position = fields.optionalInteger('position');
  const timeMillis = fields.integer('timeMillis');
  return position === undefined ? { term, index, timeMillis } : { term, index, position, timeMillis };
}
