/**
 * One partition of the keys: a limiter state machine replicated by a Raft group. The leader may deny at once from its
 * applied state (quick-answers.ts says when). Other requests are answered once their log entry is applied.
 */
import type { UnavailableReason } from '../api/refusals.ts';
import type { PeekRequest } from '../api/peek.ts';
import type { AllowRequest } from '../api/request.ts';
import type { Answer, LoggedRequest, UserRequest } from '../api/user-request.ts';
import type {
  GroupApplication,
  LeadershipStatus,
  SnapshotSource,
  SnapshotTarget,
} from '../../raft/driver/multi-raft.ts';
import { NO_NODE, type Entry, type NodeId, type SnapshotMeta } from '../../raft/types.ts';
import { assert } from '../limiter/assert.ts';
import { type Command, decodeCommand, mayBeSlow } from '../limiter/log/command.ts';
import type { Decision } from '../limiter/decision.ts';
import type { GroupClock } from '../../raft/driver/group-clock.ts';
import type { RuleTable } from '../limiter/rules.ts';
import { LimiterStateMachine } from '../limiter/state-machine.ts';
import { requestKeyOf } from '../limiter/state/request-memory.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { answerTo, unavailable } from './answer.ts';
import { isPut, QuickAnswers } from './quick-answers.ts';
import { Housekeeping } from './housekeeping.ts';
import { OwnProposals } from './own-proposals.ts';
import type { PartitionInit } from './partition-options.ts';
import { type Done, type Early, type Waiter, Waiters } from './waiters.ts';

/** The replica of a partition on this node. */
export class Partition implements GroupApplication {
  readonly clock: GroupClock;
  readonly housekeeping: Housekeeping;
  readonly #init: PartitionInit;
  readonly #machine: LimiterStateMachine;
  #isLeader = false;
  #leader: NodeId = NO_NODE;
  #term = 0;
  #applied = { index: 0, term: 0 };
  /** Requests that came before this leader had applied everything that former leaders decided. */
  #early: Early[] = [];
  /** Peeks that wait for a quorum. */
  #peeks = 0;
  readonly #waiters: Waiters;
  readonly #quick: QuickAnswers;
  /** The leader's own proposals. They are proposed before the waiting requests. */
  readonly #own: OwnProposals;
  #room: Room = 'free';

  constructor(init: PartitionInit) {
    this.#init = init;
    this.clock = init.clock;
    this.#machine = new LimiterStateMachine(init.hashSeed);
    this.housekeeping = new Housekeeping({ ...init, machine: this.#machine });
    this.#waiters = new Waiters(init.monotonicMillis, init.options, init.timed);
    this.#own = new OwnProposals({
      machine: this.#machine,
      wallMillis: init.wallMillis,
      rulesTaken: (to) => this.#waiters.answerMatchedByOther(to, unavailable('rules_changed', false)),
    });
    const nowMillis = (): number => this.clock.nowMillis();
    this.#quick = new QuickAnswers({
      machine: this.#machine,
      housekeeping: this.housekeeping,
      nowMillis,
      room: () => this.#room,
      bound: {
        maxAheadMillis: init.options.maxAheadMillis,
        nowMillis: () => Math.max(nowMillis(), Math.floor(init.wallMillis())),
      },
    });
  }

  get leader(): NodeId {
    return this.#leader;
  }

  get term(): number {
    return this.#term;
  }

  /** Requests that wait for the log or for their entry to be applied, and peeks that wait for a quorum. */
  get waitingCount(): number {
    return this.#peeks + this.#early.length + this.#waiters.pendingCount + this.#waiters.inflightCount;
  }

  stats(): ReturnType<LimiterStateMachine['stats']> {
    return this.#machine.stats();
  }

  /** In bytes by the model of `StateSize`: equal on all replicas that applied the same entries. */
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

  /** See `LimiterStateMachine.restoredMillis`, as of now. */
  get restoredMillis(): number {
    return this.#machine.restoredMillis(this.clock.nowMillis());
  }

  /** The present time in UTC, as far as the log knows it. */
  get utcMillis(): number {
    return this.clock.nowMillis() + this.#machine.utcAheadMillis;
  }

  /** The rules in force here; undefined until the first table is applied. */
  get ruleTable(): RuleTable | undefined {
    return this.#machine.ruleTable;
  }

  /** Asks for `table` to come into force if it is newer than the table in the log: the leader proposes it. */
  wantRules(table: RuleTable): void {
    this.#own.wantRules(table);
    if (this.#isLeader && this.#own.areRulesDue(this.#term)) this.#init.requestProposal();
  }

  /** Called each second with what most wall clocks have reached; the leader logs how far UTC is ahead. */
  followUtc(utcMillis = -Infinity): void {
    const mayReport = this.#isLeader && this.#canDecide && !this.housekeeping.isLowDisk;
    const aheadMillis = Math.floor(utcMillis) - this.clock.nowMillis();
    if (this.#own.wantUtc(mayReport ? aheadMillis : 0, this.#term)) this.#init.requestProposal();
  }

  /** Close to a full disk nothing more is proposed. */
  setLowDisk(isLow: boolean): void {
    this.housekeeping.isLowDisk = isLow;
  }

  /** Sets the room of the nodes with a replica. Call it repeatedly while it is not `free`. */
  limitRoom(room: Room): void {
    this.#room = room;
    // Even if this partition gets no requests: others may need the room.
    if (room !== 'free' && this.#isLeader && this.#machine.stateBytes > 0) this.housekeeping.want();
  }

  /**
   * Answers a request, with `notLeader` if this node does not lead. Calls `done` once, perhaps at once.
   * @param request well-formed, see `invalidIn`
   * @param deadlineMillis on this node's monotonic clock: nobody waits for the answer after this
   */
  decide(request: UserRequest, deadlineMillis: number, done: Done): void {
    if (!this.#isLeader) {
      done({ kind: 'notLeader', leader: this.#leader, term: this.#term });
      return;
    }
    if (!this.#canDecide) {
      if (this.#early.length >= this.#init.options.pendingMax) done(unavailable('overloaded', false));
      else this.#early.push({ request, deadlineMillis, done });
      return;
    }
    switch (request.ask) {
      case 'peek':
        return this.#peek(request, done);
      case 'refund':
      case 'customer':
        return this.#propose(request, deadlineMillis, done); // Its grant may be on the way.
      case undefined:
        this.#allow(request, deadlineMillis, done);
    }
  }

  /** Answers once a quorum confirms that this node leads, so it includes every decision answered before. */
  #peek(request: PeekRequest, done: Done): void {
    this.#peeks += 1;
    this.#init.readIndex((index) => {
      this.#peeks -= 1;
      // The new leader is not known here yet.
      if (index === undefined) done({ kind: 'notLeader', leader: NO_NODE, term: this.#term });
      else done(this.#quick.peek(request));
    });
  }

  /**
   * With an entry of its own term a leader has applied everything committed before (Raft dissertation, 6.4). Until then
   * it could deny what its log grants further on. A new partition also needs its first rules.
   */
  get #canDecide(): boolean {
    return this.#applied.term === this.#term && this.#machine.ruleTable !== undefined;
  }

  /** The denial that this node, if it leads, could give now without the log. Counts nothing. */
  deniedAtOnce(request: AllowRequest): Decision | undefined {
    if (!this.#isLeader || !this.#canDecide) return undefined;
    if (request.matchedBy !== this.#own.rulesAhead(this.#term)) return undefined;
    return this.#quick.denialOf(request);
  }

  #allow(request: AllowRequest, deadlineMillis: number, done: Done): void {
    if (request.ifRemembered === true) return this.#propose(request, deadlineMillis, done);
    const retryKey = requestKeyOf(request);
    if (retryKey !== undefined && this.#waiters.maybeJoin(retryKey, request, deadlineMillis, done)) return;
    const reason = this.#reasonNotToPropose(request);
    const rejection = this.#rejectionAtOnce(request, reason !== undefined);
    // The applied rules are older than those that found the limits.
    const wantsNewerRules = (request.matchedBy ?? 0) > (this.#machine.ruleTable?.version ?? Infinity);
    if (rejection !== undefined) done(wantsNewerRules ? unavailable('rules_changed', false) : rejection);
    else if (reason !== undefined) done(unavailable(reason, false));
    else this.#enqueue(retryKey, request, deadlineMillis, done);
  }

  /** For requests that have no retries and are judged by the log alone. */
  #propose(request: LoggedRequest, deadlineMillis: number, done: Done): void {
    const reason = this.#reasonNotToPropose(request);
    if (reason !== undefined) done(unavailable(reason, false));
    else this.#enqueue(undefined, request, deadlineMillis, done);
  }

  #enqueue(retryKey: string | undefined, request: LoggedRequest, deadlineMillis: number, done: Done): void {
    this.#waiters.add(retryKey, request, deadlineMillis, done);
    if (this.#waiters.pendingCount === 1) this.#init.requestProposal();
  }

  /** The answer without the log. @param mustJudge the log cannot be asked, so the request is judged here in any case */
  #rejectionAtOnce(request: AllowRequest, mustJudge: boolean): Answer | undefined {
    const { ruleTable } = this.#machine;
    const { matchedBy = this.#own.rulesAhead(this.#term) } = request;
    if (ruleTable !== undefined && matchedBy !== this.#own.rulesAhead(this.#term))
      return unavailable('rules_changed', false);
    // Before the rules, so that a retry gets its answer even if they changed. The log decides: another leader may have
    // refunded the grant, or it may be forgotten.
    if (this.#machine.isRemembered(request)) return undefined;
    return this.#quick.rejectionOf(request, mustJudge);
  }

  #reasonNotToPropose(request: LoggedRequest): UnavailableReason | undefined {
    // Otherwise an attempt matched by older rules could still be granted after this answer.
    const { matchedBy = 0 } = request.ask === undefined ? request : {};
    if (matchedBy > this.#own.rulesAhead(this.#term)) return 'rules_changed';
    if (this.housekeeping.isLowDisk) return 'low_disk';
    if (this.#room !== 'free' && isPut(request)) return 'at_capacity';
    return this.#waiters.isFullFor(request, this.#init.options) ? 'overloaded' : undefined;
  }

  takeProposal(): Uint8Array | undefined {
    const own = this.#own.take(this.#term, () => this.housekeeping.take());
    const data = own ?? this.#waiters.takeBatch(this.#init.options.batchMax);
    // Everything that was taken has expired, so continue with what waits behind it.
    if (data === undefined) this.#maybeProposeMore();
    return data;
  }

  proposed(entry: Entry | undefined): void {
    if (!this.#own.proposed(entry)) this.#waiters.proposed(entry);
    if (!this.#own.waitsForRoom) this.#maybeProposeMore();
  }

  #maybeProposeMore(): void {
    if (this.#waiters.pendingCount > 0 || this.#own.isHistoryDue(this.#term)) this.#init.requestProposal();
  }

  apply(entry: Entry): void {
    const waited = this.#waiters.leave(entry);
    const isOurs = waited?.term === entry.term;
    if (entry.kind === 'command') {
      const command = decodeCommand(entry.data);
      if (isOurs) this.#applyOurs(command, entry, waited.waiters);
      else this.housekeeping.apply(command, entry);
    }
    if (waited !== undefined) this.#waiters.applied(waited, entry);
    const isNewTerm = entry.term !== this.#applied.term;
    this.#applied = { index: entry.index, term: entry.term };
    if (isNewTerm) this.#waiters.answerOverruled(this.#applied);
    if (this.#own.waitsForRoom || (isNewTerm && this.#own.isHistoryDue(this.#term)))
      this.#init.requestProposal();
    if (this.#early.length > 0 && this.#canDecide) this.#decideEarly();
  }

  isSlowToApply({ kind, data }: Entry): boolean {
    return kind === 'command' && mayBeSlow(data);
  }

  #applyOurs(command: Command, entry: Entry, waiters: readonly Waiter[]): void {
    const decisions: Decision[] = [];
    this.housekeeping.apply(command, entry, (_, decision) => decisions.push(decision));
    // Answer only now: the caller may ask again at once, and must find the whole entry applied.
    for (const [i, waiter] of waiters.entries()) {
      const decision = decisions[i];
      if (decision === undefined) assert(false, `entry ${entry.index} lacks a decision`);
      if (!decision.allowed) this.#quick.denied(waiter.request, decision, entry.timeMillis);
      this.#waiters.answer(waiter, answerTo(waiter.request, decision, entry));
    }
  }

  #decideEarly(): void {
    const early = this.#early;
    this.#early = [];
    for (const { request, deadlineMillis, done } of early) this.decide(request, deadlineMillis, done);
  }

  configChanged(): void {
    this.#init.configChanged?.();
  }

  /** The replica was removed. Other nodes may decide what is in its log, unknown to this node. */
  dropped(): void {
    this.#waiters.answerProposed(unavailable('unknown_outcome', true));
  }

  snapshot(): SnapshotSource {
    return this.#machine.snapshot();
  }

  restore({ index, term }: SnapshotMeta): SnapshotTarget {
    const restore = this.#machine.restore();
    return {
      ...restore,
      install: () => {
        restore.install();
        this.housekeeping.replaced();
        // What the snapshot covers was decided, but not by entries that this node saw.
        this.#applied = { index, term };
        this.#waiters.answerOverruled(this.#applied);
        this.#waiters.answerProposed(unavailable('unknown_outcome', true));
      },
    };
  }

  statusChanged(status: LeadershipStatus): void {
    const wasLeader = this.#isLeader;
    const isNewTerm = this.#term !== status.term;
    this.#isLeader = status.isLeader;
    this.#term = status.term;
    // The same leader in a newer term is news: it lost its leadership in between.
    if (this.#leader !== status.leader || (isNewTerm && status.leader !== NO_NODE)) {
      this.#leader = status.leader;
      this.#init.leaderChanged(this.#init.partition, status.leader, status.term);
    }
    if (status.isLeader) this.#waiters.leads(status.term);
    if (status.isLeader !== wasLeader) this.housekeeping.leads(status.isLeader);
    if (status.isLeader && !wasLeader) this.#init.requestProposal();
    if (wasLeader && !status.isLeader) {
      // `decide` answers these with `notLeader`, because this node no longer leads.
      this.#decideEarly();
      // Not in the log yet, so another node may decide these. Requests in the log wait for their outcome.
      this.#waiters.answerPending({ kind: 'notLeader', leader: status.leader, term: status.term });
    }
  }
}
