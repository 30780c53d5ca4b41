/**
 * One node without sockets, timers and clocks: the partitions, their Raft groups, group 0 and the request path,
 * wired together. Its dependencies are arguments, so a simulator can run it too.
 */
import type { ChangeDone, ClusterChange } from '../api/cluster-change.ts';
import type { DoneWith, UserRequest } from '../api/user-request.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import type { GroupApplication, MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import { ClockWatch } from '../clock/clock-watch.ts';
import type { MatchedRequests } from '../matching/matched-requests.ts';
import { ClusterPlacement, META_GROUP, metaMembers, unlabelled } from '../meta/cluster-placement.ts';
import { Membership } from '../meta/membership.ts';
import { MetaGroup } from '../meta/meta-group.ts';
import type { MetaState } from '../meta/cluster-state.ts';
import type { MembershipStatus } from '../meta/own-membership.ts';
import type { CapacityReport, CapacityWatch } from '../partition/capacity-watch.ts';
import type { Partition } from '../partition/partition.ts';
import type { Forwarder } from '../router/forwarder.ts';
import type { Router } from '../router/router.ts';
import type { Refusal } from '../wire/hello.ts';
import type { NodeReport } from '../wire/node-report.ts';
import { type Backups, backupsOf } from './backups.ts';
import { watchCapacity } from './capacity.ts';
import { type Departure, newDeparture } from './departure.ts';
import { Replicas, restoreGroup } from './replicas.ts';
import { Draining } from './draining.ts';
import { FirstRules, Leading } from './leading.ts';
import { ticksOf } from '../config/config.ts';
import { FIRST_ID_BOUND, type NodeCoreInit } from './node-core-init.ts';
import { introductionsOf } from './peer-addresses.ts';
import { PeerEvents } from './peer-events.ts';
import { newRaft } from './raft-driver.ts';
import { newRouting } from './routing.ts';
import { RulesChanges, type RulesChangesInit } from './rules-changes.ts';
import { newTokens, type Tokens } from './tokens.ts';
import { UsageExchange } from './usage-exchange.ts';

/** The core of one node. */
export class NodeCore {
  readonly raft: MultiRaft;
  readonly router: Router;
  readonly placement: ClusterPlacement;
  readonly meta: MetaGroup;
  readonly clock: ClockWatch;
  /** Changes and spreads rules. */
  readonly rules: RulesChanges;
  /** Checks and changes tokens. */
  readonly tokens: Tokens;
  readonly draining: Draining;
  readonly leading: Leading;
  readonly #firstRules: FirstRules;
  /** Collects the usage figures of all nodes. */
  readonly usage: UsageExchange;
  /** Answers the requests of clients. */
  readonly requests: MatchedRequests;
  readonly backups: Backups;
  /** Takes everything that comes from peers. */
  readonly peers: PeerEvents;
  readonly #init: NodeCoreInit;
  readonly #forwarder: Forwarder;
  readonly #membership: Membership;
  readonly #capacity: CapacityWatch;
  readonly #departure: Departure;
  /** The nodes that the cluster was created with. */
  readonly #founders: readonly NodeId[];
  readonly #replicas: Replicas;

  private constructor(init: NodeCoreInit) {
    const { config, clocks, nodeId, hash, admission } = init;
    this.#init = init;
    this.#founders = config.founders.map(({ id }) => id);
    this.placement = new ClusterPlacement(this.#founders, config.partitions, config.replicas, hash);
    this.raft = newRaft(init);
    this.meta = this.#newMeta();
    this.backups = backupsOf(init, this.raft);
    this.#replicas = new Replicas({
      ...init,
      raft: this.raft,
      placement: this.placement,
      options: init.queues,
      placementVersion: () => this.meta.state?.version,
      rulesAsked: () => this.meta.state?.rules,
      leaderChanged: (partition, leader, term) => {
        this.router.leaderChanged(partition, leader, term);
        init.leaderChanged(partition, leader);
      },
      refusedAtCapacity: () => this.#capacity.refusedOne(),
      added: (group, app) => this.#added(group, app),
    });
    this.clock = this.#newClockWatch();
    this.#membership = this.#newMembership();
    const { timing, partitions: partitionCount } = config;
    const change: RulesChangesInit['change'] = (...asked) => this.#membership.change(...asked);
    this.rules = new RulesChanges({ core: this, timing, partitionCount, change });
    const state = (): MetaState | undefined => this.meta.state;
    this.tokens = newTokens(init, { state, change });
    this.draining = new Draining({ ...init, raft: this.raft, state });
    this.leading = new Leading({ init, raft: this.raft, placement: this.placement, state });
    this.#firstRules = new FirstRules({ raft: this.raft, state, ...ticksOf(timing) });
    this.#capacity = watchCapacity({
      ...init,
      raft: this.raft,
      meta: this.meta,
      partitions: this.partitions,
      monotonicMillis: clocks.monotonicMillis,
      refusing: init.refusingAtCapacity,
    });
    const leaving = (): readonly NodeId[] => this.meta.state?.leaving.map(({ id }) => id) ?? [];
    this.#departure = newDeparture(init, this.raft, () => [...this.#nodeIds, ...leaving()]);
    const { forwarder, ...routing } = newRouting({
      init,
      state,
      ask: (...asked) => this.ask(...asked),
      placement: this.placement,
      partitions: this.partitions,
      hearsOfLeaders: (partition) => this.#replicas.hearsOfLeaders(partition),
    });
    this.#forwarder = forwarder;
    ({ router: this.router, requests: this.requests } = routing);
    this.usage = new UsageExchange(init, () => this.#nodeIds);
    this.peers = new PeerEvents({
      nodeId,
      admission,
      raft: this.raft,
      membership: this.#membership,
      capacity: this.#capacity,
      clock: this.clock,
      forwarder,
      router: this.router,
      usage: this.usage,
      leading: this.leading,
      reported: (report) => this.#reported(report),
    });
  }

  get #nodeIds(): readonly NodeId[] {
    return this.meta.state?.nodes.map(({ id }) => id) ?? this.#founders;
  }

  #newMeta(): MetaGroup {
    const { config, clocks, hash } = this.#init;
    return new MetaGroup({
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      founders: introductionsOf(config),
      rules: { ...config.rules, version: 1 },
      fixed: { replicas: config.replicas, partitions: config.partitions, hash },
      requestProposal: () => this.raft.requestProposal(META_GROUP),
      stateChanged: (state) => this.#stateChanged(state),
      configChanged: () => this.#membership.admissionChanged(),
    });
  }

  #reported(report: NodeReport): void {
    this.rules.heard(report);
    this.tokens.heard(report);
    this.#init.reported?.(report);
  }

  #newClockWatch(): ClockWatch {
    const { nodeId, clocks, random, send, clockJudged } = this.#init;
    return new ClockWatch({
      nodeId,
      ...clocks,
      process: random(FIRST_ID_BOUND),
      nodes: () => this.#nodeIds,
      limitPpm: () => this.#replicas.clockDriftPpm,
      send,
      judged: (verdict) => {
        clockJudged?.(verdict);
        this.raft.avoidLeading('clockRate', !verdict.fit);
      },
    });
  }

  #newMembership(): Membership {
    const { config, random } = this.#init;
    const { requestDeadlineMillis, tickMillis } = config.timing;
    return new Membership({
      ...this.#init,
      raft: this.raft,
      meta: this.meta,
      placement: this.placement,
      replicas: this.#replicas,
      firstId: random(FIRST_ID_BOUND),
      isAsking: () => this.router.openCount > 0,
      farewellTicksMax: Math.ceil(requestDeadlineMillis / tickMillis),
    });
  }

  /** Builds the node and loads its groups from the store one after the other. */
  static async load(init: NodeCoreInit): Promise<NodeCore> {
    const core = new NodeCore(init);
    const { partitionCount } = core.placement;
    for (let partition = 0; partition < partitionCount; partition += 1) {
      core.#membership.keeper.loaded(partition, await core.#replicas.load(partition));
      init.loaded?.(partition + 1, partitionCount + 1);
    }
    // Last, as it says what else belongs here; by then all that is on disk is loaded.
    await core.#loadMeta();
    init.loaded?.(partitionCount + 1, partitionCount + 1);
    core.raft.start();
    return core;
  }

  async #loadMeta(): Promise<void> {
    const { store, nodeId } = this.#init;
    const stored = await store.load(META_GROUP);
    if (stored !== undefined) await restoreGroup(store, META_GROUP, stored, this.meta);
    const { voters } = metaMembers(unlabelled(this.#founders));
    this.raft.addGroup({
      group: META_GROUP,
      voters: voters.includes(nodeId) ? voters : [],
      preferredLeader: voters[0] ?? nodeId,
      app: this.meta,
      stored,
    });
    this.#added(META_GROUP, this.meta);
  }

  #added(group: GroupId, app: GroupApplication): void {
    this.#init.groupAdded?.(group, app, this.raft.status(group)?.applied ?? 0);
  }

  #stateChanged(state: MetaState): void {
    this.placement.update(state);
    this.leading.prefer();
    for (let partition = 0; partition < this.placement.partitionCount; partition += 1)
      this.#replicas.revise(partition);
    this.rules.handOn();
    this.#membership.stateChanged(state);
  }

  /** The replicas on this node, by partition. */
  get partitions(): ReadonlyMap<number, Partition> {
    return this.#replicas.all;
  }

  get membershipStatus(): MembershipStatus {
    return this.#membership.status(this.isReady);
  }

  /** The node was removed or is refused for good; it takes part no more. */
  get isExcluded(): boolean {
    return this.#membership.verdict !== undefined;
  }

  /** Nodes that have refused this node since they last admitted it. */
  get refusals(): ReadonlyMap<NodeId, Refusal> {
    return this.#membership.refusals;
  }

  /** The node knows its cluster, and every partition that should be here exists and has a leader. */
  get isReady(): boolean {
    return this.meta.state !== undefined && !this.isExcluded && this.#replicas.haveLeaders;
  }

  /**
   * Changes the cluster while it runs. A node to add is started with an empty store. One that was removed may be
   * stopped once `meta.state.settledVersion` has reached the version in the answer.
   */
  change(asked: ClusterChange, done: ChangeDone): void {
    if (asked.type === 'rules') this.rules.change(asked.change, done);
    else if (asked.type === 'tokens') this.tokens.change(asked.change, done);
    else this.#membership.change(asked, done);
  }

  /** Asks the leader of the user's partition; see `Router.ask`. */
  ask<R extends UserRequest>(request: R, done: DoneWith<R>, deadlineMillis?: number): void {
    if (this.#membership.verdict !== undefined) {
      const partition = this.router.partitionOf(request.userId);
      done({ kind: 'unavailable', reason: 'not_member', proposed: false }, partition);
      return;
    }
    try {
      this.router.ask(request, done, deadlineMillis);
    } catch (error) {
      // An invariant is broken, so the state behind it cannot be trusted any more.
      this.#init.fatal(error);
      throw error;
    }
  }

  /** Call every `timing.tickMillis`. */
  tick(): void {
    this.raft.tick();
    this.router.tick();
    this.requests.tick();
    this.#forwarder.tick();
    this.#departure.tick();
    this.draining.tick();
    this.leading.tick();
    this.#membership.tick();
    this.rules.tick();
    this.#firstRules.tick();
    this.tokens.tick();
    this.#capacity.tick();
    if (this.clock.tick()) this.#replicas.followUtc(this.clock.utcMillis);
    this.usage.tick();
  }

  /** The disk is nearly full. Call it again as long as that lasts. */
  setLowDisk(isLow: boolean): void {
    this.raft.avoidLeading('lowDisk', isLow);
    for (const partition of this.partitions.values()) partition.setLowDisk(isLow);
  }

  /** Limits the state of all partitions here, in bytes of `StateSize`. Above it all leaders refuse unknown users. */
  limitState(bytesMax: number): void {
    this.#capacity.limit(bytesMax);
  }

  /** The process is short of memory, which has the same effect as too much state. */
  shortOfHeap(isShort: boolean): void {
    this.#capacity.shortOfHeap(isShort);
  }

  get capacity(): CapacityReport {
    return this.#capacity.report;
  }

  /** Begins to hand over all leaderships before the process ends. The node still answers, by asking the others. */
  leave(): void {
    this.#departure.begin();
  }

  /**
   * The leaderships are handed over, or nobody can take them, and the others know not to ask this node any more.
   */
  get hasLeft(): boolean {
    return this.#departure.isDone;
  }

  /** Requests that wait here for a log. */
  get waitingCount(): number {
    return this.#replicas.waitingCount;
  }

  /** Nobody waits for an answer of this node, neither here nor elsewhere. */
  get isIdle(): boolean {
    const { owesAnswers, outstandingCount } = this.#forwarder;
    const open = outstandingCount + this.router.openCount + this.requests.reservations.pendingCount;
    return !owesAnswers && open + this.waitingCount === 0;
  }
}
