/**
 * Sends requests to the cluster. It collects the requests of one turn (one pass of the event loop), sends them in
 * batches to the leaders of their partitions, and repeats what is safe to repeat until the deadline. Each request gets
 * exactly one outcome. next-step.ts decides what is safe to repeat.
 */
import { batchBody, heardOf, ALLOW_BATCH } from './batch.ts';
import type { Cancel, Environment, ExchangeResult } from './environment.ts';
import { ClosedError, OverloadedError, type QuorateError } from './errors.ts';
import type { ClientEvent } from './events.ts';
import { LeaderTable } from './leader-table.ts';
import { LeaderWatch } from './leader-watch.ts';
import { type Heard, nextStep, type NextStep, undecidedError } from './next-step.ts';
import { NodeQueue } from './node-queue.ts';
import type { Settings } from './options.ts';
import type { PermitAnswer } from './permit.ts';
import { RecentMap } from './recent-map.ts';

/** How many subjects to remember the partition of. */
const HINTS_MAX = 10_000;
/** Reasons with which a node says that it accepts no requests for some time. */
const NODE_REASONS: ReadonlySet<string> = new Set(['draining', 'not_member', 'starting', 'overloaded']);
/** Reasons that mean, or suggest, that another node leads the partition. */
const LEADER_REASONS: ReadonlySet<string> = new Set(['no_leader', 'deadline', 'unknown_outcome']);

/** A request to send to the cluster. */
export interface DispatchedRequest {
  /** The request as JSON text. */
  readonly body: string;
  /** The key that selects the partition. Undefined: the key depends on the rules, which the client does not know. */
  readonly key: string | undefined;
  readonly subject: string;
  /** True: the request has an id, so it can be repeated without being counted twice. */
  readonly isRepeatable: boolean;
  /** Called once with the outcome, never before `dispatch` has returned. */
  readonly done: (outcome: Outcome) => void;
}

/** The result of a request. `node` and `sentMillis` describe the last attempt. */
export type Outcome = {
  /** True: an attempt got no answer, so it may have been counted under the id of the request. */
  readonly mayHaveCounted: boolean;
  readonly attempts: number;
  readonly node: string | undefined;
  readonly sentMillis: number;
} & (
  | { readonly answer: PermitAnswer; readonly error?: undefined }
  | { readonly error: QuorateError; readonly answer?: undefined }
);

interface Open extends DispatchedRequest {
  readonly bytes: number;
  readonly deadlineAtMillis: number;
  /**
   * True while the request is in a queue. It leaves the queue when it is sent, pauses before its next attempt, or is
   * settled.
   */
  isWaiting: boolean;
  isSent: boolean;
  isSettled: boolean;
  mayHaveCounted: boolean;
  attempts: number;
  reason: string;
  cause: Error | undefined;
  node: string | undefined;
  sentMillis: number;
  cancelDeadline: Cancel;
  cancelPause: Cancel | undefined;
}

/** Sends requests, repeats them and reports their outcomes. */
export class Dispatcher {
  readonly #environment: Environment;
  readonly #settings: Settings;
  readonly #report: (event: ClientEvent) => void;
  readonly #table: LeaderTable;
  readonly #watch: LeaderWatch | undefined;
  readonly #queues = new Map<string, NodeQueue<Open>>();
  readonly #open = new Set<Open>();
  /** The last known partition of each subject. */
  readonly #hints = new RecentMap<string, number>(HINTS_MAX);
  #isFlushPlanned = false;
  #isClosed = false;

  constructor(environment: Environment, settings: Settings, report: (event: ClientEvent) => void) {
    this.#environment = environment;
    this.#settings = settings;
    this.#report = report;
    this.#table = new LeaderTable(settings.nodes, Math.floor(environment.random() * settings.nodes.length));
    this.#watch = settings.direct ? new LeaderWatch(environment, this.#table, report) : undefined;
  }

  /**
   * Sends a request and calls its `done` later.
   *
   * @throws OverloadedError, ClosedError; `done` is not called then
   */
  dispatch(request: DispatchedRequest): void {
    const { openRequestsMax, deadlineMillis } = this.#settings;
    if (this.#isClosed) throw new ClosedError(true);
    if (this.#open.size >= openRequestsMax) throw new OverloadedError('openRequestsMax', openRequestsMax);
    const { nowMillis, after } = this.#environment;
    const open: Open = {
      ...request,
      bytes: Buffer.byteLength(request.body),
      deadlineAtMillis: nowMillis() + deadlineMillis,
      isWaiting: false,
      isSent: false,
      isSettled: false,
      mayHaveCounted: false,
      attempts: 0,
      reason: 'not_sent',
      cause: undefined,
      node: undefined,
      sentMillis: nowMillis(),
      cancelDeadline: after(deadlineMillis, () => this.#expired(open)),
      cancelPause: undefined,
    };
    this.#open.add(open);
    this.#enqueue(open);
  }

  /** Ends all open requests with a `ClosedError`. */
  close(): void {
    this.#isClosed = true;
    for (const open of this.#open) {
      const error = new ClosedError(!open.mayHaveCounted && !open.isSent);
      this.#settle(open, { kind: 'error', error });
    }
    this.#environment.transport.close();
  }

  #enqueue(open: Open): void {
    const origin = this.#table.choose(this.#partitionOf(open), this.#environment.nowMillis());
    open.isWaiting = true;
    this.#queueOf(origin).push(open);
    if (this.#isFlushPlanned) return;
    this.#isFlushPlanned = true;
    this.#environment.soon(() => {
      this.#isFlushPlanned = false;
      this.#flush();
      this.#table.nextTurn();
    });
  }

  #partitionOf({ key, subject }: Open): number | undefined {
    return key === undefined ? this.#hints.get(subject) : this.#table.partitionOf(key);
  }

  #queueOf(origin: string): NodeQueue<Open> {
    const found = this.#queues.get(origin);
    if (found !== undefined) return found;
    const queue = new NodeQueue<Open>(origin);
    this.#queues.set(origin, queue);
    return queue;
  }

  #flush(): void {
    if (this.#isClosed) return;
    this.#watch?.maybeAsk();
    for (const queue of this.#queues.values()) {
      for (;;) {
        const batch = queue.maybeTake(this.#settings);
        if (batch === undefined) break;
        this.#send(queue, batch);
      }
      // Forget the queue of this node, since the nodes of a cluster change.
      if (queue.isIdle) this.#queues.delete(queue.origin);
    }
  }

  #send(queue: NodeQueue<Open>, taken: readonly Open[]): void {
    const { origin } = queue;
    const { transport, nowMillis } = this.#environment;
    const sentMillis = nowMillis();
    // If the process was suspended, this runs before the deadline timers. The cluster may have forgotten the request
    // ids by now.
    for (const open of taken) if (open.deadlineAtMillis <= sentMillis) this.#expired(open);
    const batch = taken.filter(({ isSettled }) => !isSettled);
    if (batch.length === 0) return queue.arrived();
    let straight = 0;
    let leftMillis = 0;
    for (const open of batch) {
      Object.assign(open, {
        isWaiting: false,
        isSent: true,
        attempts: open.attempts + 1,
        node: origin,
        sentMillis,
      });
      if (this.#table.isLeader(origin, this.#partitionOf(open))) straight += 1;
      leftMillis = Math.max(leftMillis, open.deadlineAtMillis - sentMillis);
    }
    const timeoutMillis = Math.max(1, Math.min(this.#settings.attemptMillis, leftMillis));
    const body = batchBody(batch.map((open) => open.body));
    transport.send({ origin, method: 'POST', path: ALLOW_BATCH, body, timeoutMillis }, (result) => {
      queue.arrived();
      this.#received(queue, batch, result);
      this.#flush();
    });
    this.#report({ type: 'sent', node: origin, requests: batch.length, straight });
  }

  #received(queue: NodeQueue<Open>, batch: readonly Open[], result: ExchangeResult): void {
    const { origin } = queue;
    const now = this.#environment.nowMillis();
    this.#report({
      type: 'received',
      node: origin,
      requests: batch.length,
      status: result.kind === 'response' ? result.status : 0,
      tookMillis: now - (batch[0]?.sentMillis ?? now),
      ...(result.kind === 'failed' && { error: result.error }),
    });
    const heard = heardOf(result, batch.length);
    const isUseless = heard.every(
      (each) => each.kind === 'silent' || (each.kind === 'unavailable' && NODE_REASONS.has(each.reason)),
    );
    if (isUseless) this.#table.failed(origin, now);
    else this.#table.answered(origin);
    for (const [i, open] of batch.entries()) {
      const each = heard[i];
      if (each !== undefined) this.#heard(open, each);
    }
    // Move the requests queued for a failed node to other nodes. If there is no other node, they come back to this
    // queue.
    if (isUseless) for (const open of queue.takeAll()) this.#enqueue(open);
  }

  #heard(open: Open, heard: Heard): void {
    if (open.isSettled) return;
    open.isSent = false;
    this.#learnFrom(open, heard);
    const { nowMillis, random, after } = this.#environment;
    const leftMillis = open.deadlineAtMillis - nowMillis();
    // If the process was suspended, it may read a grant long after it was counted. Using it now would exceed the limit.
    if (heard.kind === 'answer' && heard.answer.allowed && leftMillis <= 0) return this.#expired(open, true);
    const asked = { ...open, leftMillis };
    const step = nextStep(heard, asked, random());
    if (step.kind !== 'retry') return this.#settle(open, step);
    const { waitMillis, reason, mayHaveCounted, cause } = step;
    Object.assign(open, { reason, mayHaveCounted, cause });
    open.cancelPause = after(waitMillis, () => this.#enqueue(open));
    this.#report({ type: 'retry', reason, attempt: open.attempts, waitMillis });
  }

  #learnFrom(open: Open, heard: Heard): void {
    if (heard.kind === 'silent' || (heard.kind === 'unavailable' && LEADER_REASONS.has(heard.reason))) {
      this.#watch?.want();
      return;
    }
    if (heard.kind !== 'answer' || !('decided' in heard.answer)) return;
    const { partition, term } = heard.answer.decided;
    if (this.#table.isOutdated(partition, term)) this.#watch?.want();
    if (open.key === undefined) this.#hints.set(open.subject, partition);
  }

  #expired(open: Open, isSent = open.isSent): void {
    const mayHaveCounted = open.mayHaveCounted || isSent;
    const reason = isSent ? 'no_answer' : open.reason;
    if (isSent) this.#watch?.want();
    open.mayHaveCounted = mayHaveCounted;
    this.#settle(open, { kind: 'error', error: undecidedError(mayHaveCounted, reason, open.cause) });
  }

  #settle(open: Open, step: Exclude<NextStep, { readonly kind: 'retry' }>): void {
    if (open.isSettled) return;
    open.isSettled = true;
    open.isWaiting = false;
    open.cancelDeadline();
    open.cancelPause?.();
    this.#open.delete(open);
    const { attempts, node, sentMillis } = open;
    const last = { mayHaveCounted: open.mayHaveCounted, attempts, node, sentMillis };
    open.done(step.kind === 'answer' ? { ...last, answer: step.answer } : { ...last, error: step.error });
  }
}
