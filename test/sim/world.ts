/** One simulated cluster from start to end: nodes, network, clients, faults and checks, all from one seed. */
import { ClusterPlacement, META_GROUP } from '../../src/meta/cluster-placement.ts';
import {
  applyMetaCommand,
  decodeMetaCommand,
  type MetaRecord,
  type MetaState,
} from '../../src/meta/meta-state.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { PARTITION_BYTES_DEFAULT } from '../../src/limiter/rules.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { NodeId } from '../../raft/types.ts';
import { partitionOf, type Hash32 } from '../../src/partition/hash.ts';
import { AskChecker } from './ask-checker.ts';
import { Clients } from './clients.ts';
import { ClockChecker } from './clock-checker.ts';
import { Coverage } from './coverage.ts';
import { EventLoop } from './event-loop.ts';
import { LimitChecker } from './limit-checker.ts';
import { Nemesis } from './nemesis.ts';
import { MembersChecker } from './members-checker.ts';
import { OfficeChecker } from './office-checker.ts';
import { Operator } from './operator.ts';
import { SimNetwork } from './network.ts';
import { type DiskCopy, RaftChecker } from './raft-checker.ts';
import type { Committed } from './group-history.ts';
import { Random } from './random.ts';
import { RejectionChecker } from './rejection-checker.ts';
import { drawSettings } from './draw-settings.ts';
import type { Kind } from './kinds.ts';
import type { Settings } from './settings.ts';
import { SimNode } from './sim-node.ts';
import type { Boundary, NodeWorld, Seams } from './node-world.ts';
import { Story, type Say } from './story.ts';
import { TimeChecker } from './time-checker.ts';

export interface WorldInit {
  readonly seed: number;
  readonly hash: Hash32;
  readonly kind?: Kind | undefined;
  readonly seams?: Seams | undefined;
  readonly say?: Say | undefined;
  /** Drawn from the seed if absent. */
  readonly settings?: Settings | undefined;
  /** Told as well; whoever is may crash a node that has reached a boundary. */
  readonly witness?: Witness | undefined;
}

export interface Witness {
  reached(node: SimNode, boundary: Boundary): void;
  durable(writes: readonly GroupWrite[]): void;
  /** From when a write is durable until its process learns of it: it may die in between. */
  readonly completionMillis: number;
}

const START_MILLIS = 1_700_000_000_000;
const CAUGHT_UP_LOOK_MILLIS = 500;

export class World {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly nodes: readonly SimNode[];
  readonly network: SimNetwork;
  readonly raft: RaftChecker;
  readonly limits: LimitChecker;
  readonly rejections = new RejectionChecker();
  readonly clocks: ClockChecker;
  readonly times: TimeChecker;
  readonly offices: OfficeChecker;
  readonly members: MembersChecker;
  readonly asks: AskChecker;
  readonly coverage: Coverage;
  readonly clients: Clients;
  readonly nemesis: Nemesis;
  readonly operator: Operator;
  /** Where the committed list of nodes wants the partitions. */
  readonly placement: ClusterPlacement;
  readonly #hash: Hash32;
  readonly #loop = new EventLoop(START_MILLIS);
  #meta: MetaRecord | undefined;
  /** What was on a disk that went back to an older copy. */
  readonly #forgotten = new Map<NodeId, DiskCopy>();
  /** Nodes that clients may ask. */
  askable: (node: SimNode) => boolean = (node) => node.isOpen;
  /** What happens when a process ends. */
  onEnded: (node: SimNode) => void;

  constructor({ seed, hash, kind, seams = {}, say, settings: given, witness }: WorldInit) {
    const now = (): number => this.#loop.now;
    this.#hash = hash;
    this.random = new Random(seed);
    this.settings = given ?? drawSettings(this.random.fork(), kind);
    this.story = new Story(now, say);
    const { settings, story, random } = this;
    this.coverage = new Coverage({ settings, story, now });
    const founders = settings.config.nodes.map((node) => node.id);
    const ids = Array.from({ length: settings.nodes + settings.spares }, (_, i) => i + 1);
    const { partitions, replicas } = settings.config;
    const founded = new ClusterPlacement(founders, partitions, replicas, hash);
    this.placement = new ClusterPlacement(founders, partitions, replicas, hash);
    const after = (delay: number, run: () => void): void => this.#loop.after(delay, run);
    const network = new SimNetwork({
      settings: settings.network,
      random: random.fork(),
      story,
      ids,
      after,
      now,
      endpoint: (id) => this.node(id),
      broke: (from) => this.asks.broke(from),
    });
    this.network = network;
    this.times = new TimeChecker({ settings, nodes: () => this.nodes, now, after });
    this.limits = new LimitChecker({
      tables: settings.tables,
      lagMax: (group, since) => this.times.lagMax(group, since),
      expectOutcome: (group, index, outcome) => this.raft.expectOutcome(group, index, outcome),
      logged: (asked, stampedMillis, where) => this.rejections.logged(asked, { stampedMillis, where }),
      charged: (asked, stampedMillis, where) => this.rejections.charged(asked, { stampedMillis, where }),
    });
    this.raft = new RaftChecker({
      now,
      story,
      driftPpm: settings.maxDriftPpm,
      mayBeLate: settings.network.late > 0 || settings.network.duplicate > 0,
      gainedBetween: (node, from, to, rate) => this.node(node).clock.gainedBetween(from, to, rate),
      foundersOf: (group) => founded.membersOf(group).voters,
      led: (node, group) => {
        this.times.led(this.node(node), group);
        this.nemesis.led(this.node(node));
      },
      appended: (node, group, entries) => this.members.appended(node, group, entries),
      installed: (node, group) => this.times.installed(node, group),
      committed: (group, committed) => {
        this.times.committed(group, committed);
        if (group === META_GROUP) this.#metaCommitted(committed);
        else this.#limitsCommitted(group, committed);
      },
    });
    this.offices = new OfficeChecker({
      entryAt: (group, index) => this.raft.entryAt(group, index),
      tableAt: (group, index) => this.limits.tableAt(group, index),
      isKnownAt: (group, index, asked) => this.limits.isKnownAt(group, index, asked),
      nodes: () => this.nodes,
      now,
      after,
    });
    this.members = new MembersChecker({
      settings,
      nodes: () => this.nodes,
      network,
      now,
      after,
      configsOf: (group) => this.raft.configsOf(group),
      diskOf: (group, node) => this.raft.diskOf(group, node),
      leaderOf: (group, term) => this.raft.leaderOf(group, term),
      placement: this.placement,
    });
    this.asks = new AskChecker({
      now,
      nodes: ids.length,
      deadlineMillis: settings.timing.requestDeadlineMillis,
      lateMillis: 3 * settings.timing.tickMillis,
      partitionOf: (userId) => this.partitionOf(userId),
    });
    const nodeWorld: NodeWorld = {
      settings,
      random,
      story,
      hash,
      seams,
      network,
      now,
      after,
      soon: (run) => this.#loop.soon(run),
      settling: () => this.#loop.settling(),
      durable: (node, writes) => {
        this.coverage.written(node, writes);
        this.raft.written(node, writes);
        this.members.written(node, writes);
        witness?.durable(writes);
      },
      groupAdded: (node, group, app, applied) => {
        this.coverage.observe(node, group, app);
        this.raft.observe(node, group, app, applied);
        this.offices.observe(node, group, app, () => this.raft.appliedIndex(group, node));
      },
      sending: (node, to, type, payload) => {
        if (type === 'peerMessages') this.raft.sending(node, to, payload);
        if (type === 'requests' && network.isConnected(node, to)) this.asks.sent(node, to, payload);
      },
      clockJudged: (node, verdict) => this.clocks.judged(node, verdict),
      ended: (node) => {
        story.tell(() => `node ${node.id} is down`);
        this.raft.ended(node.id);
        this.clocks.ended(node.id);
        this.clients.lost(node);
        this.onEnded(node);
      },
      directoryLost: (node) => this.raft.lost(node),
      madeAnew: (node) => this.raft.madeAnew(node),
      violated: (violation) => this.#loop.violated(violation),
      reached: (node, boundary) => witness?.reached(node, boundary),
      completionMillis: witness?.completionMillis ?? 0,
    };
    this.nodes = ids.map((id) => new SimNode(id, nodeWorld));
    this.clocks = new ClockChecker({
      settings,
      story,
      nodes: () => this.nodes,
      network,
      now,
      after,
      found: () => this.clients.leadersGiveUp(),
    });
    this.clients = new Clients({
      settings,
      random,
      story,
      limits: this.limits,
      rejections: this.rejections,
      nowhere: (group, requestId) => this.raft.nowhere(group, requestId),
      asks: this.asks,
      coverage: this.coverage,
      now,
      after,
      askable: () => this.nodes.filter((node) => this.askable(node)),
      committedIndex: (group) => this.raft.committedIndex(group),
      hasTaken: (node, request, since) => this.offices.hasTaken(node, request, since),
      leading: (userId) => this.#leading(userId),
      mayBeFull: () => this.mayBeFull,
      gainedMillis: () => this.raft.gainedMillis,
    });
    this.nemesis = new Nemesis({
      settings,
      random,
      story,
      network,
      after,
      nodes: this.nodes,
      crowd: (node, leader) =>
        this.clients.crowd(node, (userId) => leader === undefined || this.#leads(leader, userId)),
      stream: (leader) => this.clients.stream(leader, (userId) => this.#leads(leader, userId)),
      ask: (isActive) => {
        this.clients.isActive = isActive;
      },
      whenCaughtUp: (node, run) => this.#whenCaughtUp(node, run),
      mayLose: (node) => this.#mayLose(node),
      // Without a spare machine a lost one could not be replaced in time.
      changeNodes: () => settings.spares > 0 && this.operator.begin(),
      snapshotOf: (node, group) => this.coverage.snapshotOf(node, group),
      leaders: () => this.nodes.filter((node) => (node.core?.raft.leaderships ?? 0) > 0 && node.isRunning),
      directoryLost: (node) => this.raft.lost(node),
      copyOf: (node) => this.raft.copyOf(node),
      mayGoBack: (node, copy) => this.isSettled && this.raft.mayGoBack(node, copy),
      wentBack: (node, copy) => {
        this.#forgotten.set(node, this.raft.copyOf(node));
        this.raft.wentBack(node, copy);
      },
    });
    this.operator = new Operator({
      settings,
      random,
      story,
      nodes: this.nodes,
      after,
      meta: () => this.meta,
    });
    this.onEnded = (node) => this.nemesis.ended(node);
    for (const node of this.nodes) if (!node.joins) node.start();
  }

  /** The nodes of the cluster, as committed. */
  get meta(): MetaState | undefined {
    return this.#meta?.state;
  }

  #metaCommitted({ entry }: Committed): void {
    if (entry.kind !== 'command') return;
    const { record } = applyMetaCommand(this.#meta, decodeMetaCommand(entry.data));
    if (record === this.#meta || record === undefined) return;
    this.#meta = record;
    this.placement.update(record.state);
    this.members.metaChanged(record.state);
    this.operator.metaChanged(record.state);
  }

  #limitsCommitted(group: number, committed: Committed): void {
    this.limits.committed(group, committed);
    const { kind, data } = committed.entry;
    if (kind !== 'command') return;
    const command = decodeCommand(data);
    if (command.type === 'rules') this.coverage.rules(command.table);
  }

  /** All partitions are where they should be, and nobody is about to change that. */
  get isSettled(): boolean {
    const { meta } = this;
    return this.operator.isIdle && (meta === undefined || meta.settledVersion === meta.version);
  }

  #leading(userId: string): { readonly node: SimNode; readonly groupMillis: number } | undefined {
    const node = this.nodes.find((candidate) => candidate.isOpen && this.#leads(candidate, userId));
    const clock = node?.core?.partitions.get(this.partitionOf(userId))?.clock;
    return node === undefined || clock === undefined ? undefined : { node, groupMillis: clock.nowMillis() };
  }

  #leads({ id, core }: SimNode, userId: string): boolean {
    return core?.partitions.get(this.partitionOf(userId))?.leader === id;
  }

  /** Its disk holds, as committed, everything that it had before its directory was put back. */
  #whenCaughtUp(node: SimNode, run: () => void): void {
    this.after(CAUGHT_UP_LOOK_MILLIS, () => {
      if (node.state === 'gone' || node.isStranger) return;
      const now = this.raft.copyOf(node.id);
      const isBehind = [...(this.#forgotten.get(node.id) ?? [])].some(
        ([group, had]) => (now.get(group)?.commit ?? 0) < had.lastIndex,
      );
      if (isBehind || !node.isUp) this.#whenCaughtUp(node, run);
      else run();
    });
  }

  /** Only a member that others can do without, and only one at a time. */
  #mayLose(node: SimNode): boolean {
    const { meta } = this;
    const members = meta?.nodes.map(({ id }) => id) ?? this.settings.config.nodes.map(({ id }) => id);
    const known = [...members, ...(meta?.leaving.map(({ id }) => id) ?? [])];
    const isStable = members.includes(node.id) && (meta?.settledNodes.includes(node.id) ?? true);
    return isStable && !known.some((id) => this.node(id).isDoubtful);
  }

  get now(): number {
    return this.#loop.now;
  }

  /** A partition or a node may have no room for another user. */
  get mayBeFull(): boolean {
    const { stateBytesMax, tables, faults } = this.settings;
    const caps = tables.map(({ partitionBytesMax }) => partitionBytesMax);
    const isSmall = Math.min(stateBytesMax, ...caps) < PARTITION_BYTES_DEFAULT;
    return isSmall || faults.includes('fullMemory');
  }

  after(delayMillis: number, run: () => void): void {
    this.#loop.after(delayMillis, run);
  }

  node(id: number): SimNode {
    const node = this.nodes[id - 1];
    if (node === undefined) throw new RangeError(`there is no node ${id}`);
    return node;
  }

  partitionOf(userId: string): number {
    return partitionOf(userId, this.placement.partitionCount, this.#hash);
  }

  end(): void {
    this.#loop.end();
  }

  /** Runs until `end`. Throws a Violation. */
  run(): Promise<void> {
    return this.#loop.run();
  }
}
