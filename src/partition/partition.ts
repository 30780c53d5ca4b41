/**
 * One partition of the users: a limiter state machine behind a Raft group. On the leader it collects requests
 * into one log entry per turn, denies at once what its applied state shows to be over the limit, and answers the
 * rest when their entry has been committed and applied. It decides nothing that is not in the log.
 */
import type { GroupApplication, SnapshotSource, SnapshotTarget } from '../../raft/multi-raft.ts';
import { NO_NODE, type Entry, type NodeId, type SnapshotMeta } from '../../raft/types.ts';
import { AllowBatchBuilder } from '../limiter/batch.ts';
import { decodeCommand, encodeCommand } from '../limiter/command.ts';
import type { Decision } from '../limiter/decision.ts';
import type { GroupClock } from '../limiter/group-clock.ts';
import { type AllowRequest, checkRequest, InvalidRequestError } from '../limiter/request.ts';
import { MAX_AHEAD_MILLIS_DEFAULT, type Rule, type RuleTable } from '../limiter/rules.ts';
import { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { Answer, UnavailableReason } from './answer.ts';

export type Done = (answer: Answer) => void;

export interface PartitionOptions {
  /** Requests that wait for a place in the log; more are refused as `overloaded`. */
  readonly pendingMax: number;
  /** Requests per log entry. */
  readonly batchMax: number;
  /** Requests that are in the log and not applied yet. */
  readonly inflightMax: number;
  /** How far a caller's timestamp may be ahead of both group time and this node's wall clock. */
  readonly maxAheadMillis: number;
}

export const PARTITION_DEFAULTS: PartitionOptions = {
  pendingMax: 32_768,
  batchMax: 4_096,
  inflightMax: 65_536,
  maxAheadMillis: MAX_AHEAD_MILLIS_DEFAULT,
};

export interface PartitionInit {
  readonly partition: number;
  readonly nodeId: NodeId;
  readonly clock: GroupClock;
  readonly options: PartitionOptions;
  /** Decides until when a request is worth proposing; must not run back. */
  readonly monotonicMillis: () => number;
  /** Only to refuse timestamps from the future; decisions never see it. */
  readonly wallMillis: () => number;
  /** The rules this node was configured with; the leader proposes them if they are newer than the replicated ones. */
  readonly ruleTable: RuleTable;
  /** Asks the driver for a place in the log, soon. */
  readonly requestProposal: () => void;
  readonly leaderChanged: (partition: number, leader: NodeId) => void;
  /** The replicas of this partition are others now. */
  readonly configChanged?: () => void;
}

interface Waiter {
  readonly request: AllowRequest;
  readonly done: Done;
  /** The latest of its own and its retries'. */
  deadlineMillis: number;
  /** Set if the request has an id; retries that came while it was in flight wait in `retries`. */
  readonly retryKey: string | undefined;
  retries: Done[] | undefined;
}

interface Inflight {
  readonly term: number;
  readonly waiters: readonly Waiter[];
}

export class Partition implements GroupApplication {
  readonly clock: GroupClock;
  readonly #init: PartitionInit;
  readonly #machine = new LimiterStateMachine();
  readonly #builder = new AllowBatchBuilder();
  #isLeader = false;
  #leader: NodeId = NO_NODE;
  #term = 0;
  #applied = { index: 0, term: 0 };
  #pending: Waiter[] = [];
  /** Entries of this node's own proposals that are not applied yet, by index, oldest first. */
  readonly #inflight = new Map<number, Inflight>();
  #inflightRequests = 0;
  /** Waiters that retries of the same request can join. */
  readonly #byRetryKey = new Map<string, Waiter>();
  /** The waiters of the entry that is being proposed; undefined for a rule table. */
  #proposing: readonly Waiter[] | undefined;
  #proposedRulesInTerm = 0;
  #refusesProposals = false;

  constructor(init: PartitionInit) {
    this.#init = init;
    this.clock = init.clock;
  }

  get leader(): NodeId {
    return this.#leader;
  }

  /** Requests waiting for a place in the log or for their entry to be applied. */
  get waitingCount(): number {
    return this.#pending.length + this.#inflightRequests;
  }

  stats(): ReturnType<LimiterStateMachine['stats']> {
    return this.#machine.stats();
  }

  /** Equal on all replicas that applied the same entries. */
  stateHash(): string {
    return this.#machine.hash();
  }

  /** The rules in force here; undefined until the first table was applied. */
  get ruleTable(): RuleTable | undefined {
    return this.#machine.ruleTable;
  }

  /** Close to a full disk nothing more is proposed: a refusal is better than a failed write. */
  refuseProposals(refuse: boolean): void {
    this.#refusesProposals = refuse;
  }

  /**
   * Decides a request if this node leads the partition, else answers `notLeader`. `done` is called exactly once,
   * perhaps before this returns.
   *
   * @param deadlineMillis on this node's monotonic clock: after it, nobody waits for the answer.
   */
  decide(request: AllowRequest, deadlineMillis: number, done: Done): void {
    if (!this.#isLeader) {
      done({ kind: 'notLeader', leader: this.#leader });
      return;
    }
    const malformed = this.#malformed(request);
    if (malformed !== undefined) {
      done(malformed);
      return;
    }
    const retryKey = request.requestId === undefined ? undefined : retryKeyOf(request, request.requestId);
    // Before the rules are asked: a retry gets its answer even if they changed since.
    if (retryKey !== undefined && this.#joinsEarlierAttempt(request, retryKey, deadlineMillis, done)) return;
    const refusal = this.#refuse(request);
    if (refusal !== undefined) {
      done(refusal);
      return;
    }
    const denial = this.#machine.quickDenial(request, this.clock.nowMillis());
    if (denial !== undefined) {
      done({ kind: 'decision', decision: denial });
      return;
    }
    const reason = this.#reasonNotToPropose();
    if (reason !== undefined) {
      done(unavailable(reason, false));
      return;
    }
    const waiter: Waiter = { request, done, deadlineMillis, retryKey, retries: undefined };
    if (retryKey !== undefined) this.#byRetryKey.set(retryKey, waiter);
    this.#pending.push(waiter);
    if (this.#pending.length === 1) this.#init.requestProposal();
  }

  #reasonNotToPropose(): UnavailableReason | undefined {
    if (this.#refusesProposals) return 'low_disk';
    const { pendingMax, inflightMax } = this.#init.options;
    const isFull = this.#pending.length >= pendingMax || this.#inflightRequests >= inflightMax;
    return isFull ? 'overloaded' : undefined;
  }

  #malformed(request: AllowRequest): Answer | undefined {
    try {
      checkRequest(request);
      return undefined;
    } catch (error) {
      if (!(error instanceof InvalidRequestError)) throw error;
      return { kind: 'invalid', field: error.field, message: error.message };
    }
  }

  /** What no limit needs to be asked for: under these rules the request cannot be decided at all. */
  #refuse(request: AllowRequest): Answer | undefined {
    const table = this.#machine.ruleTable;
    if (table === undefined) return unavailable('starting', false);
    const { ruleId } = request;
    const rule: Rule | undefined =
      ruleId === undefined ? table.rules[0] : table.rules.find((candidate) => candidate.id === ruleId);
    if (rule === undefined) return invalid('rule', `there is no rule '${ruleId}'`);
    const cost = request.cost ?? 1;
    if (rule.limit > 0 && cost > rule.limit) {
      return invalid('cost', `cost must be at most the limit of rule '${rule.id}', which is ${rule.limit}`);
    }
    const { timestampMillis } = request;
    if (timestampMillis === undefined) return undefined;
    if (rule.clock === 'cluster') {
      return invalid(
        'timestampMillis',
        `rule '${rule.id}' uses the cluster's clock and takes no timestampMillis`,
      );
    }
    const { maxAheadMillis } = this.#init.options;
    const latest = Math.max(this.clock.nowMillis(), Math.floor(this.#init.wallMillis())) + maxAheadMillis;
    if (timestampMillis > latest) {
      return invalid('timestampMillis', `timestampMillis must be at most ${maxAheadMillis} ms ahead of now`);
    }
    return undefined;
  }

  /** A retry gets the answer of its first attempt: from memory, or when that one is decided. */
  #joinsEarlierAttempt(request: AllowRequest, retryKey: string, deadlineMillis: number, done: Done): boolean {
    const { ruleId, userId, requestId = '' } = request;
    const remembered = this.#machine.remembered(ruleId, userId, requestId, this.clock.nowMillis());
    if (remembered !== undefined) {
      done({ kind: 'decision', decision: remembered });
      return true;
    }
    const earlier = this.#byRetryKey.get(retryKey);
    if (earlier === undefined) return false;
    earlier.retries ??= [];
    earlier.deadlineMillis = Math.max(earlier.deadlineMillis, deadlineMillis);
    // Bounded like every queue: a client that repeats itself this often gains nothing by one more.
    if (earlier.retries.length >= RETRIES_WAITING_MAX) done(unavailable('overloaded', false));
    else earlier.retries.push(done);
    return true;
  }

  takeProposal(): Uint8Array | undefined {
    const { ruleTable } = this.#init;
    const replicated = this.#machine.ruleTable;
    this.#proposing = undefined;
    if ((replicated?.version ?? 0) < ruleTable.version && this.#proposedRulesInTerm !== this.#term) {
      this.#proposedRulesInTerm = this.#term;
      if (this.#pending.length > 0) this.#init.requestProposal();
      return encodeCommand({ type: 'rules', table: ruleTable });
    }
    const now = this.#init.monotonicMillis();
    const taken: Waiter[] = [];
    let next = 0;
    while (next < this.#pending.length && taken.length < this.#init.options.batchMax) {
      const waiter = this.#pending[next];
      next += 1;
      if (waiter === undefined) continue;
      if (waiter.deadlineMillis <= now) {
        // Nobody waits for it any more; a grant would only be charged.
        this.#settle(waiter, unavailable('deadline', false));
        continue;
      }
      this.#builder.add(waiter.request);
      taken.push(waiter);
    }
    this.#pending = next === this.#pending.length ? [] : this.#pending.slice(next);
    if (this.#pending.length > 0) this.#init.requestProposal();
    if (taken.length === 0) return undefined;
    this.#proposing = taken;
    return encodeCommand({ type: 'allow', batch: this.#builder.take() });
  }

  proposed(entry: Entry | undefined): void {
    const waiters = this.#proposing;
    this.#proposing = undefined;
    if (waiters === undefined) {
      if (entry === undefined) this.#proposedRulesInTerm = 0;
      return;
    }
    if (entry === undefined) {
      for (const waiter of waiters) this.#settle(waiter, unavailable('overloaded', false));
      return;
    }
    // An entry of an earlier term that stood here is gone from this log, but another replica may still commit it.
    this.#settleInflight((index) => index === entry.index, unavailable('unknown_outcome', true));
    this.#inflight.set(entry.index, { term: entry.term, waiters });
    this.#inflightRequests += waiters.length;
  }

  apply(entry: Entry): void {
    const waiting = this.#inflight.get(entry.index);
    if (waiting !== undefined) {
      this.#inflight.delete(entry.index);
      this.#inflightRequests -= waiting.waiters.length;
    }
    const isOurs = waiting?.term === entry.term;
    if (entry.kind === 'command') {
      const command = decodeCommand(entry.data);
      if (isOurs) {
        const { waiters } = waiting;
        this.#machine.apply(command, entry, (i, decision) => {
          const waiter = waiters[i];
          if (waiter !== undefined) this.#settle(waiter, answerOf(decision));
        });
      } else {
        this.#machine.apply(command, entry);
      }
    }
    // Another leader's entry stands where ours was: ours can never be committed.
    if (waiting !== undefined && !isOurs) this.#settleAll(waiting.waiters, unavailable('no_leader', false));
    const isNewTerm = entry.term !== this.#applied.term;
    this.#applied = { index: entry.index, term: entry.term };
    if (isNewTerm && this.#inflight.size > 0) this.#settleLost();
  }

  configChanged(): void {
    this.#init.configChanged?.();
  }

  snapshot(): SnapshotSource {
    const chunks = this.#machine.snapshot();
    return { next: () => chunks.shift(), abandon: () => void chunks.splice(0) };
  }

  restore({ index, term }: SnapshotMeta): SnapshotTarget {
    const chunks: Uint8Array[] = [];
    return {
      add: (chunk) => void chunks.push(chunk),
      complete: () => undefined,
      install: () => {
        this.#machine.restore(chunks);
        // What the snapshot covers was decided, but not by entries this node saw.
        this.#applied = { index, term };
        this.#settleLost();
        this.#settleInflight(() => true, unavailable('unknown_outcome', true));
      },
    };
  }

  /**
   * Terms never decrease along a log, so behind a committed entry no entry of an earlier term can be committed:
   * whoever waits for one was certainly not decided.
   */
  #settleLost(): void {
    const { index: end, term: committed } = this.#applied;
    this.#settleInflight((index, term) => index > end && term < committed, unavailable('no_leader', false));
  }

  #settleInflight(isMeant: (index: number, term: number) => boolean, answer: Answer): void {
    for (const [index, { term, waiters }] of this.#inflight) {
      if (!isMeant(index, term)) continue;
      this.#inflight.delete(index);
      this.#inflightRequests -= waiters.length;
      this.#settleAll(waiters, answer);
    }
  }

  statusChanged(status: {
    readonly isLeader: boolean;
    readonly term: number;
    readonly leader: NodeId;
  }): void {
    const wasLeader = this.#isLeader;
    this.#isLeader = status.isLeader;
    this.#term = status.term;
    if (this.#leader !== status.leader) {
      this.#leader = status.leader;
      this.#init.leaderChanged(this.#init.partition, status.leader);
    }
    if (status.isLeader && !wasLeader) this.#init.requestProposal();
    if (wasLeader && !status.isLeader) {
      // Not in the log yet, so another node may still decide it. What is in the log waits for its fate.
      const pending = this.#pending;
      this.#pending = [];
      this.#settleAll(pending, { kind: 'notLeader', leader: status.leader });
    }
  }

  #settleAll(waiters: readonly Waiter[], answer: Answer): void {
    for (const waiter of waiters) this.#settle(waiter, answer);
  }

  #settle(waiter: Waiter, answer: Answer): void {
    if (waiter.retryKey !== undefined && this.#byRetryKey.get(waiter.retryKey) === waiter) {
      this.#byRetryKey.delete(waiter.retryKey);
    }
    waiter.done(answer);
    if (waiter.retries !== undefined) for (const done of waiter.retries) done(answer);
  }
}

const RETRIES_WAITING_MAX = 64;

function answerOf(decision: Decision): Answer {
  return decision.refusal === 'unknown_rule'
    ? invalid('rule', `there is no rule '${decision.ruleId}'`)
    : { kind: 'decision', decision };
}

function unavailable(reason: UnavailableReason, proposed: boolean): Answer {
  return { kind: 'unavailable', reason, proposed };
}

function invalid(field: string, message: string): Answer {
  return { kind: 'invalid', field, message };
}

/** Lengths make it unambiguous whatever characters the parts contain. */
function retryKeyOf(request: AllowRequest, requestId: string): string {
  const { ruleId = '', userId } = request;
  return `${ruleId.length}:${userId.length}:${ruleId}${userId}${requestId}`;
}
