/**
 * Carries requests to the node that leads their partition, and answers back. Requests and answers of one turn
 * share a frame per peer. A request is forwarded once: the receiving node decides or says who leads, it never
 * forwards again.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Receipt } from '../limiter/decision.ts';
import type { AllowRequest } from '../limiter/request.ts';
import { FINGERPRINT_FIELDS } from '../limiter/fingerprint.ts';
import { type Answer, UNAVAILABLE_REASONS } from '../partition/answer.ts';
import type { Done, Partition } from '../partition/partition.ts';
import { array, Fields, pack, unpack } from '../transport/peer-codec.ts';

export interface ForwarderInit {
  readonly partitions: ReadonlyMap<number, Partition>;
  readonly monotonicMillis: () => number;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'requests' | 'answers', payload: Uint8Array) => boolean;
  /** Runs `flush` soon, after what is already queued. */
  readonly defer: (flush: () => void) => void;
  /** Where correlation ids start; random, so that answers meant for an earlier process of this node match nothing. */
  readonly firstId: number;
}

/** Requests on their way to other nodes; more are refused. */
const OUTSTANDING_MAX = 65_536;
const ANSWER_KINDS = [
  'decision',
  'invalid',
  'unavailable',
  'notLeader',
  'conflict',
] as const satisfies readonly Answer['kind'][];

interface Outstanding {
  readonly to: NodeId;
  readonly deadlineMillis: number;
  readonly done: Done;
}

export class Forwarder {
  readonly #init: ForwarderInit;
  /** In order of sending, so oldest first. */
  readonly #outstanding = new Map<number, Outstanding>();
  readonly #requests = new Map<NodeId, unknown[]>();
  readonly #answers = new Map<NodeId, unknown[]>();
  #nextId: number;
  #scheduled = false;

  constructor(init: ForwarderInit) {
    this.#init = init;
    this.#nextId = init.firstId;
  }

  get outstandingCount(): number {
    return this.#outstanding.size;
  }

  /** Sends a request to `to`. `done` is called once, unless the deadline passes first: then nobody waits. */
  forward(to: NodeId, partition: number, request: AllowRequest, deadlineMillis: number, done: Done): void {
    if (this.#outstanding.size >= OUTSTANDING_MAX) {
      done({ kind: 'unavailable', reason: 'overloaded', proposed: false });
      return;
    }
    const id = this.#nextId;
    this.#nextId += 1;
    this.#outstanding.set(id, { to, deadlineMillis, done });
    const budgetMillis = Math.max(0, Math.floor(deadlineMillis - this.#init.monotonicMillis()));
    const { userId, ruleId, cost, timestampMillis, requestId } = request;
    this.#queue(this.#requests, to, [
      id,
      budgetMillis,
      partition,
      userId,
      ruleId ?? null,
      cost ?? null,
      timestampMillis ?? null,
      requestId ?? null,
    ]);
  }

  #queue(queues: Map<NodeId, unknown[]>, to: NodeId, item: unknown): void {
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
    for (const [to, queue] of requests) {
      for (const part of inParts(queue)) {
        if (!this.#init.send(to, 'requests', pack(part))) this.#notSent(part);
      }
    }
  }

  /** The frame never left: certainly nothing was proposed. */
  #notSent(queue: readonly unknown[]): void {
    for (const item of queue) {
      const id = new Fields(item).integer('id');
      this.#finish(id, { kind: 'notLeader', leader: 0 });
    }
  }

  /** `from` undefined: it is our own verdict. */
  #finish(id: number, answer: Answer, from?: NodeId): void {
    const outstanding = this.#outstanding.get(id);
    if (outstanding === undefined || (from !== undefined && outstanding.to !== from)) return;
    this.#outstanding.delete(id);
    outstanding.done(answer);
  }

  /** The connection to `peer` broke. What it was asked may or may not have been decided. */
  peerDisconnected(peer: NodeId): void {
    const unsent = this.#requests.get(peer);
    this.#requests.delete(peer);
    if (unsent !== undefined) this.#notSent(unsent);
    for (const [id, { to }] of this.#outstanding) {
      if (to === peer) this.#finish(id, { kind: 'unavailable', reason: 'unknown_outcome', proposed: true });
    }
  }

  /** Forgets requests that nobody waits for any more. */
  tick(): void {
    const now = this.#init.monotonicMillis();
    for (const [id, { deadlineMillis }] of this.#outstanding) {
      if (deadlineMillis > now) return;
      this.#outstanding.delete(id);
    }
  }

  /** Requests from another node. Throws FrameError if they are malformed. */
  receiveRequests(from: NodeId, payload: Uint8Array): void {
    const now = this.#init.monotonicMillis();
    for (const item of array(unpack(payload), 'requests')) {
      const fields = new Fields(item);
      const id = fields.integer('id');
      const deadlineMillis = now + fields.integer('budgetMillis');
      const partition = this.#init.partitions.get(fields.integer('partition'));
      const request: AllowRequest = {
        userId: fields.string('userId'),
        ruleId: fields.optionalString('ruleId'),
        cost: fields.optionalInteger('cost'),
        timestampMillis: fields.optionalInteger('timestampMillis'),
        requestId: fields.optionalString('requestId'),
      };
      const done = (answer: Answer): void => this.#queue(this.#answers, from, [id, ...encodeAnswer(answer)]);
      if (partition === undefined) done({ kind: 'notLeader', leader: 0 });
      else partition.decide(request, deadlineMillis, done);
    }
  }

  /** Answers from another node, believed only if that node was asked. Throws FrameError if they are malformed. */
  receiveAnswers(from: NodeId, payload: Uint8Array): void {
    for (const item of array(unpack(payload), 'answers')) {
      const fields = new Fields(item);
      const id = fields.integer('id');
      this.#finish(id, decodeAnswer(fields), from);
    }
  }
}

/** Far below the bound of a frame, whatever the requests hold. */
const ITEMS_PER_FRAME_MAX = 4_096;

function inParts(items: unknown[]): unknown[][] {
  if (items.length <= ITEMS_PER_FRAME_MAX) return [items];
  const parts: unknown[][] = [];
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
      return [kind, answer.leader];
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
      return { kind, leader: fields.integer('leader') };
  }
}

function decodeReceipt(fields: Fields): Receipt {
  const term = fields.integer('term');
  const index = fields.integer('index');
  const position = fields.optionalInteger('position');
  const timeMillis = fields.integer('timeMillis');
  return position === undefined ? { term, index, timeMillis } : { term, index, position, timeMillis };
}
