/**
 * One node without its sockets, timers and clocks: the partitions, the driver of their Raft groups and the router,
 * wired together. What it needs of the outside world comes in as arguments, so that a simulator can run it too.
 */
import { RAFT_DEFAULTS } from '../raft/core-state.ts';
import {
  type GroupApplication,
  MULTI_RAFT_DEFAULTS,
  MultiRaft,
  type MultiRaftOptions,
} from '../raft/multi-raft.ts';
import type { LogStore, StoredGroup } from '../raft/store.ts';
import { type GroupConfig, type GroupId, NO_NODE, type NodeId } from '../raft/types.ts';
import { type NodeReport, reportOf } from './cluster-view.ts';
import { type ClusterConfig, ticksOf } from './config.ts';
import { Departure } from './departure.ts';
import { GroupClock } from './limiter/group-clock.ts';
import type { AllowRequest } from './limiter/request.ts';
import { ClusterPlacement, META_GROUP, metaMembers } from './meta/cluster-placement.ts';
import { ChangeForwarder } from './meta/change-forwarder.ts';
import { GroupMover } from './meta/group-mover.ts';
import { MetaGroup, type NodeChangeResult } from './meta/meta-group.ts';
import type { MetaState, NodeChange } from './meta/meta-state.ts';
import type { Hash32 } from './partition/hash.ts';
import { Partition, PARTITION_DEFAULTS } from './partition/partition.ts';
import { groupOfPartition } from './partition/placement.ts';
import { Forwarder } from './router/forwarder.ts';
import { type RoutedAnswer, Router } from './router/router.ts';
import type { FrameType } from './transport/frame.ts';
import {
  array,
  decodePeerMessages,
  encodePeerMessages,
  Fields,
  integer,
  pack,
  unpack,
} from './transport/peer-codec.ts';

export interface Clocks {
  /** Never runs back; fractions of a millisecond. */
  readonly monotonicMillis: () => number;
  /** Milliseconds since 1970. Used to start group time, to refuse timestamps from the future, and in headers. */
  readonly wallMillis: () => number;
}

export interface NodeCoreInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
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
  readonly send: (to: NodeId, type: FrameType, payload: Uint8Array) => boolean;
  readonly isConnected: (peer: NodeId) => boolean;
  readonly leaderChanged: (partition: number, leader: NodeId) => void;
  /** The nodes of the cluster are others now, or are known for the first time. */
  readonly nodesChanged?: (state: MetaState) => void;
  /** While it loads: of `of` groups it has read so many. */
  readonly loaded?: (groups: number, of: number) => void;
  /** A group was added to this node, before anything of it is applied beyond `applied`; for those who look on. */
  readonly groupAdded?: (group: GroupId, app: GroupApplication, applied: number) => void;
  /** Called once, when nothing may be said any more. */
  readonly fatal: (error: unknown) => void;
  readonly raft?: Partial<MultiRaftOptions>;
}

/** Frames between nodes that a NodeCore understands. */
export type CoreFrame =
  | 'peerMessages'
  | 'requests'
  | 'answers'
  | 'settled'
  | 'change'
  | 'changed'
  | 'leaving';

/** Requests without an answer that a node holds at a time. */
const OPEN_REQUESTS_MAX = 65_536;
const FIRST_ID_BOUND = 2 ** 47;
/** So long a node that stops looks for successors. */
const HAND_OVER_MILLIS_MAX = 2_000;
const NOTHING = new Uint8Array(0);

export class NodeCore {
  readonly raft: MultiRaft;
  readonly router: Router;
  readonly placement: ClusterPlacement;
  readonly meta: MetaGroup;
  readonly #init: NodeCoreInit;
  readonly #forwarder: Forwarder;
  readonly #mover: GroupMover;
  readonly #changes: ChangeForwarder;
  readonly #departure: Departure;
  /** Those the cluster was created with. */
  readonly #founders: readonly NodeId[];
  /** All replicas on this node, also of partitions that are moving here or have moved away. */
  readonly #replicas = new Map<number, Partition>();
  /** The replicas that have a vote: they hear from Raft who leads. */
  readonly #voting = new Map<number, Partition>();

  private constructor(init: NodeCoreInit) {
    const { config, nodeId, clocks } = init;
    const { timing } = config;
    this.#init = init;
    const founders = config.nodes.filter((node) => node.joins !== true);
    this.#founders = founders.map(({ id }) => id);
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
      fatal: init.fatal,
    });
    this.meta = new MetaGroup({
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      founders,
      replicas: config.replicas,
      requestProposal: () => this.raft.requestProposal(META_GROUP),
      stateChanged: (state) => this.#stateChanged(state),
    });
    this.#mover = new GroupMover({
      raft: this.raft,
      meta: this.meta,
      placement: this.placement,
      groups: () => [META_GROUP, ...[...this.#replicas.keys()].map(groupOfPartition)],
      report: (to, version, groups) => init.send(to, 'settled', pack([version, groups])),
    });
    this.#changes = new ChangeForwarder({
      meta: this.meta,
      isConnected: init.isConnected,
      send: init.send,
      firstId: init.random(FIRST_ID_BOUND),
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
      openMax: OPEN_REQUESTS_MAX,
    });
  }

  /** Builds the node and loads all its groups from the store. */
  static async load(init: NodeCoreInit): Promise<NodeCore> {
    const core = new NodeCore(init);
    const groupCount = 1 + core.placement.partitionCount;
    const meta = await init.store.load(META_GROUP);
    const stored = new Map<number, StoredGroup | undefined>();
    for (let partition = 0; partition < core.placement.partitionCount; partition += 1) {
      // Also of partitions that moved away: others may not know yet that this replica is not needed.
      init.loaded?.(1 + partition, groupCount);
      const group = await init.store.load(groupOfPartition(partition));
      if (group?.removed === true) continue;
      if (group !== undefined || core.#wasFoundedHere(partition)) stored.set(partition, group);
    }
    // Only when all is read: a group that was added may write.
    core.#addMeta(meta);
    for (const [partition, group] of stored) core.#addPartition(partition, group);
    return core;
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

  #addPartition(partition: number, stored: StoredGroup | undefined): void {
    const { nodeId, config, clocks } = this.#init;
    const group = groupOfPartition(partition);
    const app = new Partition({
      partition,
      nodeId,
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      options: PARTITION_DEFAULTS,
      monotonicMillis: clocks.monotonicMillis,
      wallMillis: clocks.wallMillis,
      ruleTable: config.rules,
      requestProposal: () => this.raft.requestProposal(group),
      leaderChanged: (changed, leader, term) => {
        this.router.leaderChanged(changed, leader, term);
        this.#init.leaderChanged(changed, leader);
      },
      configChanged: () => this.#revise(partition),
    });
    this.#replicas.set(partition, app);
    this.raft.addGroup({
      group,
      // A replica that comes later learns from the others who they are.
      voters: this.#wasFoundedHere(partition) ? this.placement.founded.replicasOf(partition) : [],
      preferredLeader: this.placement.replicasOf(partition)[0] ?? nodeId,
      app,
      stored,
    });
    this.#revise(partition);
    this.#added(group, app);
  }

  #added(group: GroupId, app: GroupApplication): void {
    this.#init.groupAdded?.(group, app, this.raft.status(group)?.applied ?? 0);
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
      const replicas = this.placement.replicasOf(partition);
      const leader = replicas[0];
      if (leader !== undefined) this.raft.preferLeader(groupOfPartition(partition), leader);
      if (replicas.includes(this.#init.nodeId)) this.#join(partition);
      this.#revise(partition);
    }
    const leader = metaMembers(state.nodes.map(({ id }) => id)).voters[0];
    if (leader !== undefined) this.raft.preferLeader(META_GROUP, leader);
    this.#init.nodesChanged?.(state);
  }

  /** Takes part in a partition that moves here. Nothing of it is on the disk, or it would have been loaded. */
  #join(partition: number): void {
    if (this.#replicas.has(partition)) return;
    this.#init.defer(() => {
      if (!this.#replicas.has(partition)) this.#addPartition(partition, undefined);
    });
  }

  /** The partitions of which this node holds a replica. */
  get partitions(): ReadonlyMap<number, Partition> {
    return this.#replicas;
  }

  /** This node knows its cluster, and every partition that should be here is, and has a leader. */
  get isReady(): boolean {
    if (this.meta.state === undefined) return false;
    for (let partition = 0; partition < this.placement.partitionCount; partition += 1) {
      if (!this.placement.replicasOf(partition).includes(this.#init.nodeId)) continue;
      if ((this.#voting.get(partition)?.leader ?? NO_NODE) === NO_NODE) return false;
    }
    return true;
  }

  /**
   * Adds a node to the cluster, removes one, or replaces one by another, while it runs. Any node takes changes and
   * hands them to the leader of group 0. A node to add is started with an empty store and `joins` in its
   * configuration. A node that was removed may be stopped once `meta.state.settledVersion` has reached the version
   * that `done` was told: until then its votes and copies may be needed.
   *
   * @param done told once; never if this process ends before
   */
  changeNodes(change: NodeChange, done: (result: NodeChangeResult) => void): void {
    this.#changes.change(change, done);
  }

  /** Asks for a grant; see `Router.allow`. */
  allow(request: AllowRequest, done: (answer: RoutedAnswer, partition: number) => void): void {
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
    this.#mover.tick();
    this.#changes.tick();
  }

  /** A frame of a peer. @throws FrameError if it is malformed: the connection must be closed */
  receive(from: NodeId, type: CoreFrame, payload: Uint8Array): void {
    switch (type) {
      case 'peerMessages':
        this.raft.receive(decodePeerMessages(payload, from, this.#init.nodeId));
        return;
      case 'requests':
        this.#forwarder.receiveRequests(from, payload);
        return;
      case 'answers':
        this.#forwarder.receiveAnswers(from, payload);
        return;
      case 'settled': {
        const fields = new Fields(unpack(payload));
        const version = fields.integer('version');
        const groups = array(fields.next('groups'), 'groups').map((group) => integer(group, 'group'));
        this.#mover.reported(version, groups);
        return;
      }
      case 'change':
        this.#changes.receiveChange(from, payload);
        return;
      case 'changed':
        this.#changes.receiveResult(from, payload);
        return;
      case 'leaving':
        this.#forwarder.peerLeaves(from);
        this.router.peerLeaves(from);
        return;
    }
  }

  /** The connection from `peer` broke: its process is gone, or cannot reach us. */
  peerLost(peer: NodeId): void {
    this.raft.peerLost(peer);
    this.#forwarder.peerLost(peer);
  }

  /** The connection to `peer` broke: what was sent last may not have arrived. */
  peerDisconnected(peer: NodeId): void {
    this.#forwarder.peerDisconnected(peer);
    this.#changes.peerDisconnected(peer);
    this.router.peerDisconnected(peer);
  }

  /** Close to a full disk. To be called again while it lasts. */
  refuseProposals(refuse: boolean): void {
    this.raft.avoidLeading('lowDisk', refuse);
    for (const partition of this.#replicas.values()) partition.refuseProposals(refuse);
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
    return { node: this.#init.nodeId, pid, partitions };
  }
}
