/** One simulated cluster from start to end: nodes, network, clients, faults and checks, all from one seed. */
import { groupOfPartition, type Placement, ringPlacement } from '../../src/partition/placement.ts';
import { partitionOf, type Hash32 } from '../../src/partition/hash.ts';
import { Clients } from './clients.ts';
import { EventLoop } from './event-loop.ts';
import { LimitChecker } from './limit-checker.ts';
import { Nemesis } from './nemesis.ts';
import { SimNetwork } from './network.ts';
import { RaftChecker } from './raft-checker.ts';
import { Random } from './random.ts';
import { drawSettings, type Settings } from './settings.ts';
import { SimNode, type NodeWorld, type Seams } from './sim-node.ts';
import { Story, type Say } from './story.ts';

export interface WorldInit {
  readonly seed: number;
  readonly hash: Hash32;
  readonly seams?: Seams | undefined;
  readonly say?: Say | undefined;
}

const START_MILLIS = 1_700_000_000_000;

export class World {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly nodes: readonly SimNode[];
  readonly network: SimNetwork;
  readonly raft: RaftChecker;
  readonly limits: LimitChecker;
  readonly clients: Clients;
  readonly nemesis: Nemesis;
  readonly placement: Placement;
  readonly #hash: Hash32;
  readonly #loop = new EventLoop(START_MILLIS);
  /** Nodes that clients may ask. */
  askable: (node: SimNode) => boolean = (node) => node.isUp;
  /** What happens when a process ends. */
  onEnded: (node: SimNode) => void;

  constructor({ seed, hash, seams = {}, say }: WorldInit) {
    const now = (): number => this.#loop.now;
    this.#hash = hash;
    this.random = new Random(seed);
    this.settings = drawSettings(this.random.fork());
    this.story = new Story(now, say);
    const { settings, story, random } = this;
    const ids = settings.config.nodes.map((node) => node.id);
    this.placement = ringPlacement(ids, settings.config.partitions, settings.config.replicas, hash);
    const after = (delay: number, run: () => void): void => this.#loop.after(delay, run);
    const network = new SimNetwork({
      settings: settings.network,
      random: random.fork(),
      story,
      ids,
      after,
      now,
      endpoint: (id) => this.node(id),
    });
    this.network = network;
    this.limits = new LimitChecker({
      tables: settings.tables,
      expectState: (group, index, state) => this.raft.expectState(group, index, state),
    });
    this.raft = new RaftChecker({
      now,
      story,
      driftPpm: settings.maxDriftPpm,
      replicasOf: (group) => this.placement.replicasOf(group - 1),
      led: (node) => this.nemesis.led(this.node(node)),
      committed: (group, committed) => this.limits.committed(group, committed),
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
      durable: (node, writes) => this.raft.written(node, writes),
      loaded: (node, core) => {
        for (const [partition, app] of core.partitions) {
          const group = groupOfPartition(partition);
          this.raft.observe(node.id, group, app, core.raft.status(group)?.applied ?? 0);
        }
      },
      sending: (node, to, type, payload) => {
        if (type === 'peerMessages') this.raft.sending(node, to, payload);
      },
      ended: (node) => {
        story.tell(() => `node ${node.id} is down`);
        this.clients.lost(node);
        this.onEnded(node);
      },
      violated: (violation) => this.#loop.violated(violation),
    };
    this.nodes = ids.map((id) => new SimNode(id, nodeWorld));
    this.clients = new Clients({
      settings,
      random,
      story,
      limits: this.limits,
      now,
      after,
      askable: () => this.nodes.filter((node) => this.askable(node)),
      committedIndex: (group) => this.raft.committedIndex(group),
    });
    this.nemesis = new Nemesis({
      settings,
      random,
      story,
      network,
      after,
      nodes: this.nodes,
      leaders: () => this.nodes.filter((node) => (node.core?.raft.leaderships ?? 0) > 0 && node.isRunning),
      directoryLost: (node) => this.raft.lost(node),
    });
    this.onEnded = (node) => this.nemesis.ended(node);
    for (const node of this.nodes) node.start();
  }

  get now(): number {
    return this.#loop.now;
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
