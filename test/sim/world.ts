/** One simulated cluster from start to end: nodes, network, clients, faults and checks, all from one seed. */
import { ClusterPlacement } from '../../src/meta/cluster-placement.ts';
import { decodeMetaCommand } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { MetaRecord, MetaState } from '../../src/meta/cluster-state.ts';
import { PARTITION_BYTES_DEFAULT } from '../../src/limiter/rules.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { NodeId } from '../../raft/types.ts';
import { partitionOf, type Hash32 } from '../../src/partition/hash.ts';
import { sendBatches } from './batch-clients.ts';
import { Checkers } from './checkers.ts';
import type { ClientWorld } from './client-world.ts';
import { Clients } from './clients.ts';
import { type CustomerOperators, customerOperatorsOf } from './customer-operators.ts';
import { DescribedUse } from './described-use.ts';
import { Peekers } from './peekers.ts';
import { EventLoop } from './event-loop.ts';
import { LimitChecker } from './limit-checker.ts';
import { Nemesis } from './nemesis.ts';
import { Operator } from './operator.ts';
import { SimNetwork } from './network.ts';
import type { DiskCopy } from './disk-copies.ts';
import { RaftChecker } from './raft-checker.ts';
import type { Committed } from './group-history.ts';
import { Random } from './random.ts';
import { drawSettings } from './draw-settings.ts';
import type { Theme } from './features.ts';
import type { Settings } from './settings.ts';
import { SimNode } from './sim-node.ts';
import type { Boundary, NodeWorld, Seams } from './node-world.ts';
import { Story, type Say } from './story.ts';

export interface WorldInit {
  readonly seed: number;
  readonly hash: Hash32;
  readonly theme?: Theme | undefined;
  readonly seams?: Seams | undefined;
  readonly say?: Say | undefined;
  /** Drawn from the seed if absent. */
  readonly settings?: Settings | undefined;
  /** Also notified. It may crash a node that has reached a boundary. */
  readonly witness?: Witness | undefined;
}

export interface Witness {
  reached(node: SimNode, boundary: Boundary): void;
  durable(writes: readonly GroupWrite[]): void;
  /** From when a write is durable until its process learns of it. The process may die in between. */
  readonly completionMillis: number;
}

const START_MILLIS = 1_700_000_000_000;
const CAUGHT_UP_CHECK_MILLIS = 500;

export class World {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly nodes: readonly SimNode[];
  readonly network: SimNetwork;
  readonly checkers: Checkers;
  readonly raft: RaftChecker;
  readonly limits: LimitChecker;
  readonly clients: Clients;
  readonly peekers: Peekers;
  /** Only in worlds with documents. */
  readonly described: DescribedUse | undefined;
  /** Only in worlds with operators. */
  readonly customers: CustomerOperators | undefined;
  readonly nemesis: Nemesis;
  readonly operator: Operator;
  /** The partition placement by the committed list of nodes. */
  readonly placement: ClusterPlacement;
  readonly #hash: Hash32;
  readonly #loop = new EventLoop(START_MILLIS);
  #meta: MetaRecord | undefined;
  /** The contents that a disk had before an older copy replaced it. */
  readonly #forgotten = new Map<NodeId, DiskCopy>();
  /** Nodes that clients may ask. */
  askable: (node: SimNode) => boolean = (node) => node.isOpen;
  /** Called when a process ends. */
  onEnded: (node: SimNode) => void;

  constructor({ seed, hash, theme, seams = {}, say, settings: given, witness }: WorldInit) {
    this.#hash = hash;
    this.random = new Random(seed);
    this.settings = given ?? drawSettings(this.random.fork(), theme);
    this.story = new Story(() => this.now, say);
    const { settings, story, random } = this;
    const { partitions, replicas, nodes } = settings.config;
    const founders = nodes.map((node) => node.id);
    const ids = Array.from({ length: settings.nodes + settings.spares }, (_, i) => i + 1);
    this.placement = new ClusterPlacement(founders, partitions, replicas, hash);
    const after = (delay: number, run: () => void): void => this.after(delay, run);
    this.network = new SimNetwork({
      settings: settings.network,
      random: random.fork(),
      story,
      ids,
      after,
      now: () => this.now,
      endpoint: (id) => this.node(id),
      broke: (from) => this.checkers.asks.broke(from),
    });
    this.checkers = this.#newCheckers(new ClusterPlacement(founders, partitions, replicas, hash));
    ({ raft: this.raft, limits: this.limits } = this.checkers);
    const nodeWorld = this.#nodeWorld(seams, witness);
    this.nodes = ids.map((id) => new SimNode(id, nodeWorld));
    this.clients = new Clients(this.#clientWorld());
    this.nemesis = this.#newNemesis();
    this.operator = new Operator({
      settings,
      random,
      story,
      nodes: this.nodes,
      after,
      meta: () => this.meta,
    });
    this.onEnded = (node) => this.nemesis.ended(node);
    this.peekers = new Peekers({
      world: this.#clientWorld(),
      isActive: () => this.clients.isActive,
      mustAnswerSince: () => this.clients.mustDecideSince,
    });
    this.described = this.#newDescribed();
    this.customers = customerOperatorsOf(this.#clientWorld(), this.clients, this.described?.watch);
    sendBatches(this.#clientWorld(), this.clients, this.described?.clients);
    for (const node of this.nodes) if (!node.joins) node.start();
  }

  #newDescribed(): DescribedUse | undefined {
    const { settings, checkers, clients } = this;
    const checker = checkers.described;
    if (settings.documents === undefined || checker === undefined) return undefined;
    return new DescribedUse({
      documents: settings.documents,
      world: this.#clientWorld(),
      checker,
      clients,
      endOfChangesMillis: this.now + settings.safetyMillis,
      wantedVersion: () => this.meta?.rules?.version ?? 1,
    });
  }

  #newCheckers(founded: ClusterPlacement): Checkers {
    const { settings, story, network } = this;
    return new Checkers({
      settings,
      story,
      network,
      founded,
      nodes: () => this.nodes,
      node: (id) => this.node(id),
      partitionOf: (userId) => this.partitionOf(userId),
      now: () => this.now,
      after: (delay, run) => this.after(delay, run),
      led: (node) => this.nemesis.led(node),
      clockFound: () => this.clients.leadersGiveUp(),
      metaCommitted: (committed) => this.#metaCommitted(committed),
    });
  }

  #nodeWorld(seams: Seams, witness: Witness | undefined): NodeWorld {
    const { settings, random, story, network, checkers } = this;
    return {
      settings,
      random,
      story,
      hash: this.#hash,
      seams,
      network,
      now: () => this.now,
      after: (delay, run) => this.after(delay, run),
      soon: (run) => this.#loop.soon(run),
      settling: () => this.#loop.settling(),
      durable: (node, writes) => {
        checkers.durable(node, writes);
        witness?.durable(writes);
      },
      groupAdded: (node, group, app, applied) => checkers.groupAdded(node, group, app, applied),
      began: (node, core) => this.described?.watch.observe(this.node(node), core),
      sending: (node, to, type, payload) => checkers.sending(node, to, type, payload),
      clockJudged: (id, verdict) => checkers.clocks.judged(this.node(id), verdict),
      ended: (id) => {
        const node = this.node(id);
        story.report(() => `node ${id} is down`);
        checkers.ended(id);
        this.clients.lost(node);
        this.peekers.lost(node);
        this.described?.watch.lost(node);
        this.customers?.lost(node);
        this.onEnded(node);
      },
      directoryLost: (node) => this.raft.lost(node),
      madeAnew: (node) => this.raft.madeAnew(node),
      violated: (violation) => this.#loop.violated(violation),
      reached: (id, boundary) => witness?.reached(this.node(id), boundary),
      completionMillis: witness?.completionMillis ?? 0,
    };
  }

  #clientWorld(): ClientWorld {
    const { settings, random, story, checkers } = this;
    return {
      settings,
      random,
      story,
      limits: this.limits,
      rejections: checkers.rejections,
      nowhere: (group, requestId) => this.raft.nowhere(group, requestId),
      asks: checkers.asks,
      coverage: checkers.coverage,
      now: () => this.now,
      after: (delay, run) => this.after(delay, run),
      askable: () => this.nodes.filter((node) => this.askable(node)),
      partitionOf: (userId) => this.partitionOf(userId),
      committedIndex: (group) => this.raft.committedIndex(group),
      leading: (userId) => this.#leading(userId),
      mayBeFull: () => this.mayBeFull,
      gainedMillis: () => this.raft.gainedMillis,
    };
  }

  #newNemesis(): Nemesis {
    const { settings, random, story, network } = this;
    return new Nemesis({
      settings,
      random,
      story,
      network,
      after: (delay, run) => this.after(delay, run),
      nodes: this.nodes,
      crowd: (node, leader) =>
        this.clients.crowds.crowd(node, (userId) => leader === undefined || this.#leads(leader, userId)),
      stream: (leader) => this.clients.crowds.stream(leader, (userId) => this.#leads(leader, userId)),
      ask: (isActive) => {
        this.clients.isActive = isActive;
      },
      whenCaughtUp: (node, run) => this.#whenCaughtUp(node, run),
      mayLose: (node) => this.#mayLose(node),
      // Without a spare machine a lost node could not be replaced in time.
      changeNodes: () => settings.spares > 0 && this.operator.begin(),
      snapshotOf: (node, group) => this.checkers.coverage.snapshotOf(node, group),
      leaders: () => this.nodes.filter((node) => (node.core?.raft.leaderships ?? 0) > 0 && node.isRunning),
      directoryLost: (node) => this.raft.lost(node),
      copyOf: (node) => this.raft.copyOf(node),
      mayGoBack: (node, copy) => this.isSettled && this.raft.mayGoBack(node, copy),
      wentBack: (node, copy) => {
        this.#forgotten.set(node, this.raft.copyOf(node));
        this.raft.wentBack(node, copy);
      },
    });
  }

  /** The committed list of nodes. */
  get meta(): MetaState | undefined {
    return this.#meta?.state;
  }

  #metaCommitted({ entry }: Committed): void {
    if (entry.kind !== 'command') return;
    const { record } = applyMetaCommand(this.#meta, decodeMetaCommand(entry.data), this.#hash);
    if (record === this.#meta || record === undefined) return;
    this.#meta = record;
    this.placement.update(record.state);
    this.checkers.members.metaChanged(record.state);
    this.operator.metaChanged(record.state);
  }

  /** All partitions are where they should be, and no change is pending. */
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
    this.after(CAUGHT_UP_CHECK_MILLIS, () => {
      if (node.state === 'gone' || node.isStranger) return;
      const now = this.raft.copyOf(node.id);
      const isBehind = [...(this.#forgotten.get(node.id) ?? [])].some(
        ([group, had]) => (now.get(group)?.commit ?? 0) < had.lastIndex,
      );
      if (isBehind || !node.isUp) this.#whenCaughtUp(node, run);
      else run();
    });
  }

  /** Only a member that the others can do without, and only one at a time. */
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
    return partitionOf(userId, this.placement.partitionCount);
  }

  end(): void {
    this.#loop.end();
  }

  /** Runs until `end`. Throws a Violation. */
  run(): Promise<void> {
    return this.#loop.run();
  }
}
