/**
 * Requests on their way: gathers what is asked in one turn of the event loop, sends it in batches to whoever leads, repeats what
 * may be repeated until its deadline. Every request is told once what became of it. What may be repeated is said by next-step.ts.
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

/** Descriptions whose partition is remembered. */
const HINTS_MAX = 10_000;
/** With these a node says that it takes nothing for some time. */
const NODE_REASONS: ReadonlySet<string> = new Set(['draining', 'not_member', 'starting', 'overloaded']);
/** With these it says, or shows, that the leader is another. */
const LEADER_REASONS: ReadonlySet<string> = new Set(['no_leader', 'deadline', 'unknown_outcome']);

export interface DispatchedRequest {
  /** As JSON. */
  readonly body: string;
  /** Whose leader is asked; undefined where the rules make the key. */
  readonly key: string | undefined;
  readonly subject: string;
  /** It has an id. */
  readonly isRepeatable: boolean;
  /** Told once, after `dispatch` has returned. */
  readonly done: (outcome: Outcome) => void;
}

/** `node` and `sentMillis` are those of the last attempt. */
export type Outcome = {
  /** Under its id: an attempt that nothing was heard of, whatever the others were told. */
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
  /** In a queue. It leaves that for its node, a pause before the next attempt, or because it is settled. */
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

export class Dispatcher {
  readonly #environment: Environment;
  readonly #settings: Settings;
  readonly #tell: (event: ClientEvent) => void;
  readonly #table: LeaderTable;
  readonly #watch: LeaderWatch | undefined;
  readonly #queues = new Map<string, NodeQueue<Open>>();
  readonly #open = new Set<Open>();
  /** By subject. */
  readonly #hints = new RecentMap<string, number>(HINTS_MAX);
  #isFlushPlanned = false;
  #isClosed = false;

  constructor(environment: Environment, settings: Settings, tell: (event: ClientEvent) => void) {
    this.#environment = environment;
    this.#settings = settings;
    this.#tell = tell;
    this.#table = new LeaderTable(settings.nodes, Math.floor(environment.random() * settings.nodes.length));
    this.#watch = settings.direct ? new LeaderWatch(environment, this.#table, tell) : undefined;
  }

  /** @throws OverloadedError, ClosedError: then `done` is not told */
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

  /** Tells everybody that this client is closed. */
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
      // Nodes come and go.
      if (queue.isIdle) this.#queues.delete(queue.origin);
    }
  }

  #send(queue: NodeQueue<Open>, taken: readonly Open[]): void {
    const { origin } = queue;
    const { transport, nowMillis } = this.#environment;
    const sentMillis = nowMillis();
    // A process that stood still comes here before its timers: the ids may be forgotten meanwhile.
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
    this.#tell({ type: 'sent', node: origin, requests: batch.length, straight });
  }

  #received(queue: NodeQueue<Open>, batch: readonly Open[], result: ExchangeResult): void {
    const { origin } = queue;
    const now = this.#environment.nowMillis();
    this.#tell({
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
    // What waits for a node that is gone goes elsewhere; where there is nothing else, it comes back here.
    if (isUseless) for (const open of queue.takeAll()) this.#enqueue(open);
  }

  #heard(open: Open, heard: Heard): void {
    if (open.isSettled) return;
    open.isSent = false;
    this.#learnFrom(open, heard);
    const { nowMillis, random, after } = this.#environment;
    const leftMillis = open.deadlineAtMillis - nowMillis();
    // A process that stood still hears of a grant long after it was made: used now, it would be one too many.
    if (heard.kind === 'answer' && heard.answer.allowed && leftMillis <= 0) return this.#expired(open, true);
    const asked = { ...open, leftMillis };
    const step = nextStep(heard, asked, random());
    if (step.kind !== 'retry') return this.#settle(open, step);
    const { waitMillis, reason, mayHaveCounted, cause } = step;
    Object.assign(open, { reason, mayHaveCounted, cause });
    open.cancelPause = after(waitMillis, () => this.#enqueue(open));
    this.#tell({ type: 'retry', reason, attempt: open.attempts, waitMillis });
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
