/**
 * One partition of the users: a limiter state machine behind a Raft group. On the leader it collects requests
 * into one log entry per turn, denies at once what its applied state shows to be over the limit, and answers the
 * rest when their entry has been committed and applied. It decides nothing that is not in the log.
 */
import type { GroupApplication, SnapshotSource, SnapshotTarget } from '../../raft/driver/multi-raft.ts';
import { NO_NODE, type Entry, type NodeId, type SnapshotMeta } from '../../raft/types.ts';
import { assert } from '../limiter/assert.ts';
import { AllowBatchBuilder } from '../limiter/log/batch.ts';
import { decodeCommand, encodeCommand } from '../limiter/log/command.ts';
import type { Decision } from '../limiter/decision.ts';
import { conflictBetween } from '../limiter/fingerprint.ts';
import type { GroupClock } from '../../raft/driver/group-clock.ts';
import { questionOf } from '../limiter/judge.ts';
import type { UnavailableReason } from '../api/refusals.ts';
import type { AllowRequest } from '../api/request.ts';
import { MAX_AHEAD_MILLIS_DEFAULT, type RuleTable } from '../limiter/rules.ts';
import { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { type Answer, answerOf, invalid, unavailable } from './answer.ts';
import { Attempts, retryKeyOf } from './attempts.ts';
import { CommitTimes } from './commit-times.ts';
import { Housekeeping } from './housekeeping.ts';
import { checkedAgainstRules } from './request-checks.ts';

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
  /** `leader` leads in `term`; NO_NODE: nobody does, as far as this replica knows. */
  readonly leaderChanged: (partition: number, leader: NodeId, term: number) => void;
  /** The replicas of this partition are others now. */
  readonly configChanged?: () => void;
  /** A request was refused for want of room. */
  readonly refusedAtCapacity?: () => void;
  /** See `LimiterStateMachine`. */
  readonly hashSeed?: number;
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
  readonly sinceMillis: number;
  readonly waiters: readonly Waiter[];
}

interface Early {
  readonly request: AllowRequest;
  readonly deadlineMillis: number;
  readonly done: Done;
}

export class Partition implements GroupApplication {
  readonly clock: GroupClock;
  readonly #init: PartitionInit;
  readonly #machine: LimiterStateMachine;
  readonly #builder = new AllowBatchBuilder();
  #isLeader = false;
  #leader: NodeId = NO_NODE;
  #term = 0;
  #applied = { index: 0, term: 0 };
  #pending: Waiter[] = [];
  /** What came before this leader had applied all that former leaders decided. */
  #early: Early[] = [];
  /** Entries of this node's own proposals that are not applied yet, by index, oldest first. */
  readonly #inflight = new Map<number, Inflight>();
  #inflightRequests = 0;
  readonly #commitTimes = new CommitTimes();
  readonly #attempts = new Attempts<Waiter>();
  /** What the entry that is being proposed holds: the requests of these waiters, or something else. */
  #proposing: readonly Waiter[] | 'rules' | 'sweep' | undefined;
  #proposedRulesInTerm = 0;
  #refusesProposals = false;
  #room: Room = 'free';
  readonly #housekeeping = new Housekeeping();

  constructor(init: PartitionInit) {
    this.#init = init;
    this.clock = init.clock;
    this.#machine = new LimiterStateMachine(init.hashSeed);
  }

  get leader(): NodeId {
    return this.#leader;
  }

  get term(): number {
    return this.#term;
  }

  /** Requests waiting for a place in the log or for their entry to be applied. */
  get waitingCount(): number {
    return this.#early.length + this.#pending.length + this.#inflightRequests;
  }

  stats(): ReturnType<LimiterStateMachine['stats']> {
    return this.#machine.stats();
  }

  /** What is remembered, in bytes by the model of `StateSize`: equal on all replicas that applied the same entries. */
  get stateBytes(): number {
    return this.#machine.stateBytes;
  }

  /** Equal on all replicas that applied the same entries. */
  stateHash(): string {
    return this.#machine.hash();
  }

  /** For tests: see `LimiterStateMachine`. */
  inspect(): ReturnType<LimiterStateMachine['inspect']> {
    return this.#machine.inspect();
  }

  /** The rules in force here; undefined until the first table was applied. */
  get ruleTable(): RuleTable | undefined {
    return this.#machine.ruleTable;
  }

  /** Close to a full disk nothing more is proposed: a refusal is better than a failed write. */
  refuseProposals(refuse: boolean): void {
    this.#refusesProposals = refuse;
  }

  /** How much room the nodes have that keep this partition. To be called again while it is not `free`. */
  limitRoom(room: Room): void {
    this.#room = room;
    // Also where nobody asks any more: others may need the room.
    if (room !== 'free' && this.#isLeader && this.#machine.stateBytes > 0) this.#wantRoom();
  }

  #wantRoom(): void {
    if (this.#housekeeping.want(this.#init.monotonicMillis())) this.#init.requestProposal();
  }

  #refusedAtCapacity(): void {
    this.#init.refusedAtCapacity?.();
    this.#wantRoom();
  }

  /**
   * Decides a request if this node leads the partition, else answers `notLeader`. `done` is called exactly once,
   * perhaps before this returns.
   *
   * @param request well-formed, see `invalidIn`
   * @param deadlineMillis on this node's monotonic clock: after it, nobody waits for the answer.
   */
  decide(request: AllowRequest, deadlineMillis: number, done: Done): void {
    if (!this.#isLeader) {
      done({ kind: 'notLeader', leader: this.#leader, term: this.#term });
      return;
    }
    // With an entry of its own term a leader has applied all that was committed before (Raft, dissertation, 6.4). Until
    // then it could deny what is granted further on in its log.
    if (this.#applied.term !== this.#term) {
      if (this.#early.length >= this.#init.options.pendingMax) done(unavailable('overloaded', false));
      else this.#early.push({ request, deadlineMillis, done });
      return;
    }
    const retryKey = retryKeyOf(request);
    // Before the rules are asked: a retry gets its answer even if they changed since.
    if (retryKey !== undefined && this.#joinsEarlierAttempt(request, retryKey, deadlineMillis, done)) return;
    const refusal =
      checkedAgainstRules(request, this.#machine.ruleTable) ??
      this.#checkedTimestamp(request.timestampMillis);
    if (refusal !== undefined) {
      done(refusal);
      return;
    }
    const denial = this.#machine.quickDenial(request, this.clock.nowMillis(), this.#room);
    if (denial?.refusal === 'at_capacity') {
      this.#refusedAtCapacity();
      done(unavailable('at_capacity', false));
      return;
    }
    if (denial !== undefined) {
      done(answerOf(denial, request.requestId));
      return;
    }
    const reason = this.#reasonNotToPropose();
    if (reason !== undefined) {
      done(unavailable(reason, false));
      return;
    }
    const waiter: Waiter = { request, done, deadlineMillis, retryKey, retries: undefined };
    this.#attempts.add(waiter);
    this.#pending.push(waiter);
    if (this.#pending.length === 1) this.#init.requestProposal();
  }

  #checkedTimestamp(timestampMillis: number | undefined): Answer | undefined {
    if (timestampMillis === undefined) return undefined;
    const { maxAheadMillis } = this.#init.options;
    const latest = Math.max(this.clock.nowMillis(), Math.floor(this.#init.wallMillis())) + maxAheadMillis;
    if (timestampMillis <= latest) return undefined;
    return invalid('timestampMillis', `timestampMillis must be at most ${maxAheadMillis} ms ahead of now`);
  }

  #reasonNotToPropose(): UnavailableReason | undefined {
    if (this.#refusesProposals) return 'low_disk';
    const { pendingMax, inflightMax } = this.#init.options;
    const isFull = this.#pending.length >= pendingMax || this.#inflightRequests >= inflightMax;
    return isFull ? 'overloaded' : undefined;
  }

  /**
   * A retry gets the answer of its first attempt: from memory, or when that one is decided. Another request under the
   * same id goes its own way: which of them has the id is decided by the log. It may hold this very one already, sent
   * by a former leader and not applied here yet.
   */
  #joinsEarlierAttempt(request: AllowRequest, retryKey: string, deadlineMillis: number, done: Done): boolean {
    const { requestId = '' } = request;
    const remembered = this.#machine.remembered(request, this.clock.nowMillis());
    if (remembered !== undefined) {
      done(answerOf(remembered, requestId));
      return true;
    }
    const earlier = this.#attempts.find(retryKey);
    if (earlier === undefined) return false;
    const conflict = conflictBetween(questionOf(earlier.request), questionOf(request));
    if (conflict !== undefined) return false;
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
      this.#proposing = 'rules';
      if (this.#pending.length > 0) this.#init.requestProposal();
      return encodeCommand({ type: 'rules', table: ruleTable });
    }
    const now = this.#init.monotonicMillis();
    if (!this.#refusesProposals && this.#housekeeping.take(now)) {
      this.#proposing = 'sweep';
      if (this.#pending.length > 0) this.#init.requestProposal();
      return encodeCommand({ type: 'sweep' });
    }
    // With nothing on its way there is nothing to learn from: then it is tried.
    const inTimeMillis = this.#inflight.size === 0 ? now : now + this.#commitTimes.fastestMillis;
    const taken: Waiter[] = [];
    let next = 0;
    while (next < this.#pending.length && taken.length < this.#init.options.batchMax) {
      const waiter = this.#pending[next];
      next += 1;
      if (waiter === undefined) continue;
      if (waiter.deadlineMillis <= inTimeMillis) {
        // Nobody would wait for it any more; a grant would only be charged.
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
    if (waiters === undefined || waiters === 'sweep') return;
    if (waiters === 'rules') {
      if (entry === undefined) this.#proposedRulesInTerm = 0;
      return;
    }
    if (entry === undefined) {
      for (const waiter of waiters) this.#settle(waiter, unavailable('overloaded', false));
      return;
    }
    // An entry of an earlier term that stood here is gone from this log, but another replica may still commit it.
    this.#settleInflight((index) => index === entry.index, unavailable('unknown_outcome', true));
    const sinceMillis = this.#init.monotonicMillis();
    this.#inflight.set(entry.index, { term: entry.term, sinceMillis, waiters });
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
        const { waiters, sinceMillis } = waiting;
        this.#commitTimes.observe(this.#init.monotonicMillis() - sinceMillis);
        const decisions: Decision[] = [];
        this.#machine.apply(command, entry, (i, decision) => {
          decisions[i] = decision;
        });
        // Whoever is told may ask again at once, and must find the entry applied as a whole.
        for (const [i, waiter] of waiters.entries()) {
          const decision = decisions[i];
          if (decision === undefined)
            assert(false, `entry ${entry.index} decides as many requests as were proposed in it`);
          if (decision.refusal === 'at_capacity') this.#refusedAtCapacity();
          this.#settle(waiter, answerOf(decision, waiter.request.requestId));
        }
      } else if (command.type === 'sweep') {
        const before = this.#machine.stateBytes;
        this.#machine.apply(command, entry);
        const freedBytes = before - this.#machine.stateBytes;
        this.#housekeeping.swept(freedBytes, this.#machine.sweepsPerRound, this.#init.monotonicMillis());
      } else {
        this.#machine.apply(command, entry);
      }
    }
    // Another leader's entry stands where ours was: ours can never be committed.
    if (waiting !== undefined && !isOurs) this.#settleAll(waiting.waiters, unavailable('no_leader', false));
    const isNewTerm = entry.term !== this.#applied.term;
    this.#applied = { index: entry.index, term: entry.term };
    if (isNewTerm && this.#inflight.size > 0) this.#settleLost();
    if (isNewTerm && this.#early.length > 0 && entry.term === this.#term) this.#decideEarly();
  }

  #decideEarly(): void {
    const early = this.#early;
    this.#early = [];
    for (const { request, deadlineMillis, done } of early) this.decide(request, deadlineMillis, done);
  }

  configChanged(): void {
    this.#init.configChanged?.();
  }

  snapshot(): SnapshotSource {
    return this.#machine.snapshot();
  }

  restore({ index, term }: SnapshotMeta): SnapshotTarget {
    const restore = this.#machine.restore();
    return {
      add: (chunk) => restore.add(chunk),
      complete: () => restore.complete(),
      install: () => {
        restore.install();
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
    const isNewTerm = this.#term !== status.term;
    this.#isLeader = status.isLeader;
    this.#term = status.term;
    // The same leader in a newer term is news: it lost the office in between.
    if (this.#leader !== status.leader || (isNewTerm && status.leader !== NO_NODE)) {
      this.#leader = status.leader;
      this.#init.leaderChanged(this.#init.partition, status.leader, status.term);
    }
    if (status.isLeader && !wasLeader) this.#init.requestProposal();
    if (wasLeader && !status.isLeader) {
      // Whoever leads does not send these on: they are told who does.
      this.#decideEarly();
      // Not in the log yet, so another node may still decide it. What is in the log waits for its fate.
      const pending = this.#pending;
      this.#pending = [];
      this.#settleAll(pending, { kind: 'notLeader', leader: status.leader, term: status.term });
    }
  }

  #settleAll(waiters: readonly Waiter[], answer: Answer): void {
    for (const waiter of waiters) this.#settle(waiter, answer);
  }

  #settle(waiter: Waiter, answer: Answer): void {
    this.#attempts.delete(waiter);
    waiter.done(answer);
    if (waiter.retries !== undefined) for (const done of waiter.retries) done(answer);
  }
}

const RETRIES_WAITING_MAX = 64;
