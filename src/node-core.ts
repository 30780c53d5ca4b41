/**
 * One node without its sockets, timers and clocks: the partitions, the driver of their Raft groups and the router,
 * wired together. What it needs of the outside world comes in as arguments, so that a simulator can run it too.
 */
import { RAFT_DEFAULTS } from '../raft/core-state.ts';
import { MULTI_RAFT_DEFAULTS, MultiRaft, type MultiRaftOptions } from '../raft/multi-raft.ts';
import type { LogStore, StoredGroup } from '../raft/store.ts';
import type { NodeId } from '../raft/types.ts';
import { type NodeReport, reportOf } from './cluster-view.ts';
import type { ClusterConfig } from './config.ts';
import { GroupClock } from './limiter/group-clock.ts';
import type { AllowRequest } from './limiter/request.ts';
import type { Hash32 } from './partition/hash.ts';
import { Partition, PARTITION_DEFAULTS } from './partition/partition.ts';
import { groupOfPartition, type Placement, ringPlacement } from './partition/placement.ts';
import { Forwarder } from './router/forwarder.ts';
import { type RoutedAnswer, Router } from './router/router.ts';
import type { FrameType } from './transport/frame.ts';
import { decodePeerMessages, encodePeerMessages } from './transport/peer-codec.ts';

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
  /** A whole number in [0, bound), bound up to 2^47. */
  readonly random: (bound: number) => number;
  /** Runs `fn` soon, after what is already queued. */
  readonly defer: (fn: () => void) => void;
  /** Sends one frame to a peer; false if it was dropped. */
  readonly send: (to: NodeId, type: FrameType, payload: Uint8Array) => boolean;
  readonly isConnected: (peer: NodeId) => boolean;
  readonly leaderChanged: (partition: number, leader: NodeId) => void;
  /** Called once, when nothing may be said any more. */
  readonly fatal: (error: unknown) => void;
  readonly raft?: Partial<MultiRaftOptions>;
}

/** Requests without an answer that a node holds at a time. */
const OPEN_REQUESTS_MAX = 65_536;
const FIRST_ID_BOUND = 2 ** 47;

export class NodeCore {
  readonly raft: MultiRaft;
  readonly router: Router;
  readonly placement: Placement;
  readonly #init: NodeCoreInit;
  readonly #forwarder: Forwarder;
  readonly #partitions = new Map<number, Partition>();

  private constructor(init: NodeCoreInit) {
    const { config, nodeId, clocks } = init;
    const { timing } = config;
    this.#init = init;
    this.placement = ringPlacement(
      config.nodes.map((node) => node.id),
      config.partitions,
      config.replicas,
      init.hash,
    );
    this.raft = new MultiRaft({
      id: nodeId,
      store: init.store,
      random: init.random,
      options: {
        ...MULTI_RAFT_DEFAULTS,
        raft: {
          ...RAFT_DEFAULTS,
          heartbeatTicks: Math.ceil(timing.heartbeatMillis / timing.tickMillis),
          electionTicks: Math.ceil(timing.electionMillis / timing.tickMillis),
        },
        ...init.raft,
      },
      defer: init.defer,
      send(to, messages) {
        for (const payload of encodePeerMessages(messages)) init.send(to, 'peerMessages', payload);
      },
      fatal: init.fatal,
    });
    this.#forwarder = new Forwarder({
      partitions: this.#partitions,
      monotonicMillis: clocks.monotonicMillis,
      send: init.send,
      defer: init.defer,
      firstId: init.random(FIRST_ID_BOUND),
    });
    this.router = new Router({
      nodeId,
      placement: this.placement,
      partitions: this.#partitions,
      forwarder: this.#forwarder,
      isConnected: init.isConnected,
      hash: init.hash,
      monotonicMillis: clocks.monotonicMillis,
      deadlineMillis: timing.requestDeadlineMillis,
      openMax: OPEN_REQUESTS_MAX,
    });
  }

  /** Builds the node and loads all its groups from the store. */
  static async load(init: NodeCoreInit): Promise<NodeCore> {
    const core = new NodeCore(init);
    const stored = new Map<number, StoredGroup | undefined>();
    for (let partition = 0; partition < core.placement.partitionCount; partition += 1) {
      if (!core.placement.replicasOf(partition).includes(init.nodeId)) continue;
      stored.set(partition, await init.store.load(groupOfPartition(partition)));
    }
    // Only when all is read: a group that was added may write.
    for (const [partition, group] of stored) core.#addPartition(partition, group);
    return core;
  }

  #addPartition(partition: number, stored: StoredGroup | undefined): void {
    const { nodeId, config, clocks } = this.#init;
    const group = groupOfPartition(partition);
    const replicas = this.placement.replicasOf(partition);
    const app = new Partition({
      partition,
      nodeId,
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      options: PARTITION_DEFAULTS,
      monotonicMillis: clocks.monotonicMillis,
      wallMillis: clocks.wallMillis,
      ruleTable: config.rules,
      requestProposal: () => this.raft.requestProposal(group),
      leaderChanged: (changed, leader) => {
        this.router.leaderChanged(changed, leader);
        this.#init.leaderChanged(changed, leader);
      },
    });
    this.#partitions.set(partition, app);
    this.raft.addGroup({ group, voters: replicas, preferredLeader: replicas[0] ?? nodeId, app, stored });
  }

  get partitions(): ReadonlyMap<number, Partition> {
    return this.#partitions;
  }

  /** Every partition on this node has a leader. */
  get isReady(): boolean {
    return [...this.#partitions.values()].every((partition) => partition.leader !== 0);
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
  }

  /** A frame of a peer. @throws FrameError if it is malformed: the connection must be closed */
  receive(from: NodeId, type: 'peerMessages' | 'requests' | 'answers', payload: Uint8Array): void {
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
    }
  }

  /** The connection from `peer` broke: its process is gone, or cannot reach us. */
  peerLost(peer: NodeId): void {
    this.raft.peerLost(peer);
  }

  /** The connection to `peer` broke: what was sent last may not have arrived. */
  peerDisconnected(peer: NodeId): void {
    this.#forwarder.peerDisconnected(peer);
    this.router.peerDisconnected(peer);
  }

  refuseProposals(refuse: boolean): void {
    for (const partition of this.#partitions.values()) partition.refuseProposals(refuse);
  }

  report(pid: number): NodeReport {
    const partitions = [...this.#partitions.keys()].flatMap((partition) => {
      const status = this.raft.status(groupOfPartition(partition));
      return status === undefined ? [] : [reportOf(partition, status)];
    });
    return { node: this.#init.nodeId, pid, partitions };
  }
}
