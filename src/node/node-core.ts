/**
 * One node without its sockets, timers and clocks: the partitions, the driver of their Raft groups and the router,
 * wired together. What it needs of the outside world comes in as arguments, so that a simulator can run it too.
 */
import { RAFT_DEFAULTS } from '../../raft/core-state.ts';
import {
  type GroupApplication,
  MULTI_RAFT_DEFAULTS,
  MultiRaft,
  type MultiRaftOptions,
} from '../../raft/driver/multi-raft.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import { type GroupConfig, type GroupId, NO_NODE, type NodeId, type StoredGroup } from '../../raft/types.ts';
import { reportOf } from './cluster-view.ts';
import type { ClockVerdict } from '../clock/clock-rates.ts';
import { ClockWatch } from '../clock/clock-watch.ts';
import { type ClusterConfig, ticksOf } from '../config/config.ts';
import { restoreGroup } from './group-loader.ts';
import { Departure } from './departure.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import type { AllowRequest } from '../limiter/request.ts';
import type { Admission } from '../meta/admission.ts';
import { ClusterPlacement, META_GROUP, metaMembers } from '../meta/cluster-placement.ts';
import { Membership } from '../meta/membership.ts';
import { MetaGroup, type NodeChangeResult } from '../meta/meta-group.ts';
import type { Introduction, MetaState, NodeChange } from '../meta/meta-state.ts';
import type { LocalReplicas } from '../meta/replica-keeper.ts';
import type { Exclusion, NodeStanding } from '../meta/standing.ts';
import { watchCapacity } from './capacity.ts';
import type { Hash32 } from '../partition/hash.ts';
import type { CapacityReport, CapacityWatch } from '../partition/capacity-watch.ts';
import { Partition, PARTITION_DEFAULTS, type PartitionOptions } from '../partition/partition.ts';
import { groupOfPartition } from '../partition/placement.ts';
import { Forwarder } from '../router/forwarder.ts';
import { type RoutedAnswer, Router } from '../router/router.ts';
import { decodeAnswers } from '../wire/answers.ts';
import { decodePing, decodePong } from '../wire/clock-readings.ts';
import type { PeerFrameType } from '../wire/frame.ts';
import { decodeGroupsOfVersion } from '../wire/groups-of-version.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';
import { decodeChangeResult, decodeNodeChange } from '../wire/node-changes.ts';
import { decodeNodeReport, type NodeReport } from '../wire/node-report.ts';
import { decodePeerMessages, encodePeerMessages } from '../wire/peer-messages.ts';
import { decodeRequests } from '../wire/requests.ts';
import { decodeRoom } from '../wire/room.ts';

export interface Clocks {
  /** Never runs back; fractions of a millisecond. */
  readonly monotonicMillis: () => number;
  /** Milliseconds since 1970. Used to start group time, to refuse timestamps from the future, and in headers. */
  readonly wallMillis: () => number;
}

export interface NodeCoreInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Kept up to date here; asked by whoever takes connections. */
  readonly admission: Admission;
  readonly store: LogStore;
  readonly hash: Hash32;
  readonly clocks: Clocks;
  /** On the monotonic clock: what is read from sockets now came after this. */
  readonly doorMillis: () => number;
  /** A whole number in [0, bound), bound up to 2^47. */
  readonly random: (bound: number) => number;
  /** Runs `fn` soon, after what is already queued. */
  readonly defer: (fn: () => void) => void;
  /** Sends one frame to a peer; false if it was dropped. */
  readonly send: (to: NodeId, type: PeerFrameType, payload: Uint8Array) => boolean;
  /** Whether there are connections to and from a peer: it can be asked, and can answer. */
  readonly isConnected: (peer: NodeId) => boolean;
  readonly leaderChanged: (partition: number, leader: NodeId) => void;
  /** The nodes of the cluster are others now, or are known for the first time, or other ones are admitted. */
  readonly nodesChanged?: (state: MetaState, metaMembers: readonly NodeId[]) => void;
  /** Called once: this node was removed, or is not the one whose id it bears. It takes part no more. */
  readonly excluded?: (standing: Exclusion) => void;
  /** Whether this node's clock runs at the speed of the others' has changed. */
  readonly clockJudged?: (verdict: ClockVerdict) => void;
  /** A peer says how its groups are doing. */
  readonly reported?: (report: NodeReport) => void;
  /** A group was added to this node, before anything of it is applied beyond `applied`; for those who look on. */
  readonly groupAdded?: (group: GroupId, app: GroupApplication, applied: number) => void;
  /** While the node loads: so many groups of so many have been read. */
  readonly loaded?: (done: number, total: number) => void;
  /** A leader sent a snapshot that is no sound one; it was forgotten. */
  readonly snapshotRefused?: (group: GroupId, error: unknown) => void;
  /** Requests are refused for want of room now, or no longer. */
  readonly refusingAtCapacity?: (isRefusing: boolean, report: CapacityReport) => void;
  /** Called once, when nothing may be said any more. */
  readonly fatal: (error: unknown) => void;
  readonly raft?: Partial<MultiRaftOptions>;
  /** Smaller than usual, for tests that fill them. */
  readonly queues?: QueueBounds;
}

/** Requests that wait at a time: at a node for their answer, and see `PartitionOptions`. */
export interface QueueBounds extends Pick<PartitionOptions, 'pendingMax' | 'inflightMax' | 'batchMax'> {
  readonly openMax: number;
}

/** Requests without an answer that a node holds at a time. */
const OPEN_REQUESTS_MAX = 65_536;
const FIRST_ID_BOUND = 2 ** 47;
const SEED_BOUND = 2 ** 47;
/** So long a node that stops looks for successors. */
const HAND_OVER_MILLIS_MAX = 2_000;
const NOTHING = new Uint8Array(0);

export class NodeCore {
  readonly raft: MultiRaft;
  readonly router: Router;
  readonly placement: ClusterPlacement;
  readonly meta: MetaGroup;
  readonly clock: ClockWatch;
  readonly #init: NodeCoreInit;
  readonly #forwarder: Forwarder;
  readonly #membership: Membership;
  readonly #capacity: CapacityWatch;
  readonly #departure: Departure;
  /** Those the cluster was created with, whatever the file lists. */
  readonly #founders: readonly NodeId[];
  /** All replicas on this node, also of partitions that are moving here or have moved away. */
  readonly #replicas = new Map<number, Partition>();
  /** The replicas that have a vote: they hear from Raft who leads. */
  readonly #voting = new Map<number, Partition>();

  private constructor(init: NodeCoreInit) {
    const { config, nodeId, clocks } = init;
    const { timing } = config;
    this.#init = init;
    this.#founders = config.founders.map(({ id }) => id);
    this.placement = new ClusterPlacement(this.#founders, config.partitions, config.replicas, init.hash);
    this.raft = new MultiRaft({
      id: nodeId,
      store: init.store,
      random: init.random,
      options: {
        ...MULTI_RAFT_DEFAULTS,
        raft: {
          ...RAFT_DEFAULTS,
          ...ticksOf(timing),
        },
        ...init.raft,
      },
      defer: init.defer,
      send(to, messages) {
        for (const payload of encodePeerMessages(messages)) init.send(to, 'peerMessages', payload);
      },
      snapshotRefused: (group, _meta, error) => init.snapshotRefused?.(group, error),
      fatal: init.fatal,
    });
    this.meta = new MetaGroup({
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      founders: introductionsOf(config),
      replicas: config.replicas,
      requestProposal: () => this.raft.requestProposal(META_GROUP),
      stateChanged: (state) => this.#stateChanged(state),
      configChanged: () => this.#membership.admissionChanged(),
    });
    this.clock = new ClockWatch({
      nodeId,
      monotonicMillis: clocks.monotonicMillis,
      process: init.random(FIRST_ID_BOUND),
      nodes: () => this.meta.state?.nodes.map(({ id }) => id) ?? this.#founders,
      limitPpm: () => this.#clockDriftPpm(),
      send: init.send,
      judged: (verdict) => {
        init.clockJudged?.(verdict);
        this.raft.avoidLeading('clockRate', !verdict.fit);
      },
    });
    this.#membership = new Membership({
      nodeId,
      raft: this.raft,
      meta: this.meta,
      placement: this.placement,
      admission: init.admission,
      replicas: this.#localReplicas(),
      isConnected: init.isConnected,
      send: init.send,
      defer: init.defer,
      firstId: init.random(FIRST_ID_BOUND),
      nodesChanged: init.nodesChanged,
      excluded: init.excluded,
      isAsking: () => this.router.openCount > 0,
      farewellTicksMax: Math.ceil(timing.requestDeadlineMillis / timing.tickMillis),
    });
    this.#capacity = watchCapacity({
      nodeId,
      config,
      raft: this.raft,
      meta: this.meta,
      partitions: this.#replicas,
      monotonicMillis: clocks.monotonicMillis,
      send: init.send,
      refusing: init.refusingAtCapacity,
    });
    const { electionMillis, requestDeadlineMillis, tickMillis } = timing;
    // Early enough to ask another node before the deadline, late enough for a way there and back over slow links.
    const silentTicksMax = Math.max(3, Math.ceil((0.4 * requestDeadlineMillis) / tickMillis));
    this.#departure = new Departure({
      raft: this.raft,
      announce: () => this.#announceDeparture(),
      limits: {
        allMax: Math.ceil(HAND_OVER_MILLIS_MAX / tickMillis),
        stuckMax: Math.ceil((2 * electionMillis) / tickMillis),
        aloneMax: Math.ceil((2 * timing.heartbeatMillis) / tickMillis),
      },
    });
    this.#forwarder = new Forwarder({
      nodeId,
      partitions: this.#replicas,
      monotonicMillis: clocks.monotonicMillis,
      doorMillis: init.doorMillis,
      send: init.send,
      defer: init.defer,
      isConnected: init.isConnected,
      suspected: (node) => this.router.peerSuspected(node),
      silentTicksMax,
      firstId: init.random(FIRST_ID_BOUND),
    });
    this.router = new Router({
      nodeId,
      placement: this.placement,
      partitions: this.#replicas,
      hearsOfLeaders: (partition) => this.#hearsOfLeaders(partition),
      forwarder: this.#forwarder,
      hash: init.hash,
      monotonicMillis: clocks.monotonicMillis,
      doorMillis: init.doorMillis,
      deadlineMillis: requestDeadlineMillis,
      silentTicksMax,
      pauseMillisMin: tickMillis,
      pauseMillisMax: electionMillis,
      electionMillisMax: 2 * electionMillis,
      openMax: init.queues?.openMax ?? OPEN_REQUESTS_MAX,
    });
  }

  /** Builds the node and loads its groups from the store, one after the other: each is done before the next is read. */
  static async load(init: NodeCoreInit): Promise<NodeCore> {
    const core = new NodeCore(init);
    const { partitionCount } = core.placement;
    for (let partition = 0; partition < partitionCount; partition += 1) {
      await core.#loadPartition(partition);
      init.loaded?.(partition + 1, partitionCount + 1);
    }
    // Last, since it says what else belongs here: all that is on the disk is there by then.
    await core.#loadMeta();
    init.loaded?.(partitionCount + 1, partitionCount + 1);
    core.raft.start();
    return core;
  }

  async #loadPartition(partition: number): Promise<void> {
    const { store } = this.#init;
    const group = groupOfPartition(partition);
    const stored = await store.load(group);
    this.#membership.keeper.loaded(partition, stored);
    // Also what has moved away: others may not know yet that this replica is not needed.
    if (stored?.removed === true || (stored === undefined && !this.#wasFoundedHere(partition))) return;
    const app = this.#newPartition(partition);
    if (stored !== undefined) await restoreGroup(store, group, stored, app);
    this.#addPartition(partition, app, stored);
  }

  async #loadMeta(): Promise<void> {
    const { store } = this.#init;
    const stored = await store.load(META_GROUP);
    if (stored !== undefined) await restoreGroup(store, META_GROUP, stored, this.meta);
    this.#addMeta(stored);
  }

  #wasFoundedHere(partition: number): boolean {
    return this.placement.founded.replicasOf(partition).includes(this.#init.nodeId);
  }

  #addMeta(stored: StoredGroup | undefined): void {
    const { voters } = metaMembers(this.#founders);
    this.raft.addGroup({
      group: META_GROUP,
      voters: voters.includes(this.#init.nodeId) ? voters : [],
      preferredLeader: voters[0] ?? this.#init.nodeId,
      app: this.meta,
      stored,
    });
    this.#added(META_GROUP, this.meta);
  }

  #localReplicas(): LocalReplicas & { partitions(): Iterable<number> } {
    return {
      partitions: () => this.#replicas.keys(),
      has: (partition) => this.#replicas.has(partition),
      add: (partition, returns) =>
        this.#addPartition(partition, this.#newPartition(partition), returns?.tombstone, returns?.placement),
      drop: (partition) => {
        this.#replicas.delete(partition);
        this.#voting.delete(partition);
      },
    };
  }

  #newPartition(partition: number): Partition {
    const { nodeId, config, clocks } = this.#init;
    const group = groupOfPartition(partition);
    return new Partition({
      partition,
      nodeId,
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      options: { ...PARTITION_DEFAULTS, ...this.#init.queues },
      hashSeed: this.#init.random(SEED_BOUND),
      monotonicMillis: clocks.monotonicMillis,
      wallMillis: clocks.wallMillis,
      ruleTable: config.rules,
      requestProposal: () => this.raft.requestProposal(group),
      leaderChanged: (changed, leader, term) => {
        this.router.leaderChanged(changed, leader, term);
        this.#init.leaderChanged(changed, leader);
      },
      configChanged: () => this.#revise(partition),
      refusedAtCapacity: () => this.#capacity.refusedOne(),
    });
  }

  /** @param placement the version that brings a replica back which was removed */
  #addPartition(
    partition: number,
    app: Partition,
    stored: StoredGroup | undefined,
    placement?: number,
  ): void {
    const { nodeId } = this.#init;
    const group = groupOfPartition(partition);
    this.#replicas.set(partition, app);
    this.raft.addGroup({
      group,
      // A replica that comes later learns from the others who they are.
      voters: this.#wasFoundedHere(partition) ? this.placement.founded.replicasOf(partition) : [],
      preferredLeader: this.placement.replicasOf(partition)[0] ?? nodeId,
      app,
      stored,
      ...(placement !== undefined && { placement }),
    });
    this.#revise(partition);
    this.#added(group, app);
  }

  #added(group: GroupId, app: GroupApplication): void {
    this.#init.groupAdded?.(group, app, this.raft.status(group)?.applied ?? 0);
  }

  /** The strictest of the rules in force in the partitions held here: while a change of the rules travels they differ. */
  #clockDriftPpm(): number {
    let least = Infinity;
    for (const { ruleTable } of this.#replicas.values())
      if (ruleTable !== undefined) least = Math.min(least, ruleTable.clockDriftPpm);
    return least === Infinity ? this.#init.config.rules.clockDriftPpm : least;
  }

  /** Does this node's replica vote, as far as it knows? */
  #revise(partition: number): void {
    const replica = this.#replicas.get(partition);
    const config = this.raft.configOf(groupOfPartition(partition));
    if (replica === undefined || config === undefined) return;
    if (this.#hasVote(partition, config)) this.#voting.set(partition, replica);
    else this.#voting.delete(partition);
  }

  /** A replica that waits for a leader may have been removed without being told; certainly not while none moves. */
  #hearsOfLeaders(partition: number): boolean {
    const replica = this.#voting.get(partition);
    return replica !== undefined && (this.placement.isSettled || replica.leader !== NO_NODE);
  }

  #hasVote(partition: number, { voters, outgoing, epoch }: GroupConfig): boolean {
    const { nodeId } = this.#init;
    if (!voters.includes(nodeId) && !outgoing.includes(nodeId)) return false;
    // Removed while it was away, perhaps: then nobody told the replica, but the nodes know that all have moved.
    const { state } = this.meta;
    if (!this.placement.isSettled || (state !== undefined && epoch > state.version)) return true;
    return this.placement.replicasOf(partition).includes(nodeId);
  }

  #stateChanged(state: MetaState): void {
    this.placement.update(state);
    for (let partition = 0; partition < this.placement.partitionCount; partition += 1) {
      const [leader] = this.placement.replicasOf(partition);
      if (leader !== undefined) this.raft.preferLeader(groupOfPartition(partition), leader);
      this.#revise(partition);
    }
    const leader = metaMembers(state.nodes.map(({ id }) => id)).voters[0];
    if (leader !== undefined) this.raft.preferLeader(META_GROUP, leader);
    this.#membership.stateChanged(state);
  }

  /** The partitions of which this node holds a replica. */
  get partitions(): ReadonlyMap<number, Partition> {
    return this.#replicas;
  }

  get standing(): NodeStanding {
    return this.#membership.standing(this.isReady);
  }

  /** It was removed, or is refused for good: it takes part no more. */
  get isExcluded(): boolean {
    return this.#membership.verdict !== undefined;
  }

  /** Who has refused this node since it was last welcome there. */
  get refusals(): ReadonlyMap<NodeId, Refusal> {
    return this.#membership.refusals;
  }

  /** This node knows its cluster, and every partition that should be here is, and has a leader. */
  get isReady(): boolean {
    if (this.meta.state === undefined || this.#membership.verdict !== undefined) return false;
    for (let partition = 0; partition < this.placement.partitionCount; partition += 1) {
      if (!this.placement.replicasOf(partition).includes(this.#init.nodeId)) continue;
      if ((this.#voting.get(partition)?.leader ?? NO_NODE) === NO_NODE) return false;
    }
    return true;
  }

  /**
   * Adds a node to the cluster, removes one, or replaces one by another, while it runs. Any node takes changes and
   * hands them to the leader of group 0. A node to add is started with an empty store. A node that was removed may be
   * stopped once `meta.state.settledVersion` has reached the version that `done` was told: until then its votes and
   * copies may be needed.
   *
   * @param done told once; never if this process ends before
   */
  changeNodes(change: NodeChange, done: (result: NodeChangeResult) => void): void {
    this.#membership.change(change, done);
  }

  /** Asks for a grant; see `Router.allow`. */
  allow(request: AllowRequest, done: (answer: RoutedAnswer, partition: number) => void): void {
    if (this.#membership.verdict !== undefined) {
      const partition = this.router.partitionOf(request.userId);
      done({ kind: 'unavailable', reason: 'not_member', proposed: false }, partition);
      return;
    }
    try {
      this.router.allow(request, done);
    } catch (error) {
      // A broken invariant: the state behind it can no longer be trusted.
      this.#init.fatal(error);
      throw error;
    }
  }

  /** Time passed: one tick of `timing.tickMillis`. */
  tick(): void {
    this.raft.tick();
    this.router.tick();
    this.#forwarder.tick();
    this.#departure.tick();
    this.#membership.tick();
    this.#capacity.tick();
    this.clock.tick();
  }

  /** A frame of a peer. @throws FrameError if it is malformed: the connection must be closed */
  receive(sender: Sender, type: PeerFrameType, payload: Uint8Array): void {
    const { admission, nodeId } = this.#init;
    const { node: from } = sender;
    const trust = admission.trustIn(sender);
    if (trust === 'refused') return;
    switch (type) {
      case 'peerMessages': {
        const messages = decodePeerMessages(payload, from, nodeId);
        const isTaken =
          trust === 'recorded' ? messages : messages.filter((m) => admission.mayTake(sender, m));
        this.raft.receive(isTaken);
        return;
      }
      case 'requests':
        this.#forwarder.receiveRequests(from, decodeRequests(payload));
        return;
      case 'answers':
        this.#forwarder.receiveAnswers(from, decodeAnswers(payload));
        return;
      case 'settled':
        this.#membership.receiveSettled(sender, decodeGroupsOfVersion(payload));
        return;
      case 'offers':
        this.#membership.receiveOffers(sender, decodeGroupsOfVersion(payload));
        return;
      case 'change':
        this.#membership.receiveChange(from, decodeNodeChange(payload));
        return;
      case 'changed':
        this.#membership.receiveChanged(from, decodeChangeResult(payload));
        return;
      case 'capacity':
        this.#capacity.heard(from, decodeRoom(payload));
        return;
      case 'ping':
        this.clock.receivePing(from, decodePing(payload));
        return;
      case 'pong':
        this.clock.receivePong(from, decodePong(payload));
        return;
      case 'status':
        this.#init.reported?.(decodeNodeReport(from, payload));
        return;
      case 'leaving':
        this.#forwarder.peerLeaves(from);
        this.router.peerLeaves(from);
        return;
    }
  }

  /** A peer said this, and was not refused. */
  introduced(hello: Hello): void {
    this.#membership.introduced(hello);
  }

  /** `peer` takes this node for who it is. */
  welcomedBy(peer: NodeId): void {
    this.#membership.welcomedBy(peer);
  }

  /** `peer` does not. */
  refusedBy(peer: NodeId, refusal: Refusal): void {
    this.#membership.refusedBy(peer, refusal);
  }

  /** The connection from `peer` broke: its process is gone, or cannot reach us. */
  peerLost(peer: NodeId): void {
    this.#membership.peerLost(peer);
    this.raft.peerLost(peer);
    this.#forwarder.peerLost(peer);
  }

  /** The connection to `peer` broke: what was sent last may not have arrived. */
  peerDisconnected(peer: NodeId): void {
    this.#forwarder.peerDisconnected(peer);
    this.#membership.peerDisconnected(peer);
    this.router.peerDisconnected(peer);
  }

  /** Close to a full disk. To be called again while it lasts. */
  refuseProposals(refuse: boolean): void {
    this.raft.avoidLeading('lowDisk', refuse);
    for (const partition of this.#replicas.values()) partition.refuseProposals(refuse);
  }

  /**
   * What the partitions of this node may remember together, in bytes by the model of `StateSize`. Beyond that their
   * leaders, here and elsewhere, refuse users and request ids that they do not know. No bound until this is called.
   */
  limitState(bytesMax: number): void {
    this.#capacity.limit(bytesMax);
  }

  get capacity(): CapacityReport {
    return this.#capacity.report;
  }

  /** This process is about to end: others take over what it leads. It goes on answering, and asks them. */
  leave(): void {
    this.#departure.begin();
  }

  /** Others lead what this node led, or nobody would; and they know that they need not ask it any more. */
  get hasLeft(): boolean {
    return this.#departure.isDone;
  }

  /** Nobody waits for an answer of this node, neither here nor elsewhere. */
  get isIdle(): boolean {
    if (this.#forwarder.owesAnswers) return false;
    if (this.router.openCount > 0 || this.#forwarder.outstandingCount > 0) return false;
    return [...this.#replicas.values()].every(({ waitingCount }) => waitingCount === 0);
  }

  #announceDeparture(): void {
    const { state } = this.meta;
    const peers =
      state === undefined ? this.#founders : [...state.nodes, ...state.leaving].map(({ id }) => id);
    for (const peer of peers) {
      if (peer !== this.#init.nodeId) this.#init.send(peer, 'leaving', NOTHING);
    }
  }

  report(pid: number): NodeReport {
    const partitions = [...this.#replicas.keys()].flatMap((partition) => {
      const status = this.raft.status(groupOfPartition(partition));
      return status === undefined ? [] : [reportOf(partition, status)];
    });
    const { verdict } = this.clock;
    return { node: this.#init.nodeId, pid, clock: verdict.fit ? 'fit' : verdict.direction, partitions };
  }
}

/** The founders, and where they are as far as this node's configuration knows. */
function introductionsOf({ founders, nodes }: ClusterConfig): Introduction[] {
  return founders.map((founder) => ({ ...nodes.find(({ id }) => id === founder.id), ...founder }));
}
