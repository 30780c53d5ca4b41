/**
 * A small simulated cluster that follows a script, and crashes at one boundary of it or at none. All durations are
 * fixed or seeded, so runs with and without the crash are equal up to it.
 */
import type { NodeId } from '../../../raft/types.ts';
import { META_GROUP } from '../../../src/meta/cluster-placement.ts';
import { EventLoop } from '../event-loop.ts';
import { LimitChecker } from '../limit-checker.ts';
import { digestOfItems } from '../state-digest.ts';
import { SimNetwork } from '../network.ts';
import { RaftChecker } from '../raft-checker.ts';
import { Random } from '../random.ts';
import { SimNode } from '../sim-node.ts';
import type { NodeWorld } from '../node-world.ts';
import { Story, Violation } from '../story.ts';
import { Boundaries } from './boundaries.ts';
import type { Point, PointKind, Variant } from './crash.ts';
import type { Play, Start } from './enumerate.ts';
import { GROUP, settingsOf } from './settings.ts';
import { follow, type Steps } from './steps.ts';

export interface Script {
  readonly name: string;
  readonly snapshotEveryBytes: number;
  /**
   * Boundaries count only from the point that the script marks: another script begins with the same steps and covers
   * those.
   */
  readonly countsLate: boolean;
  /** Grants in the log at the end. Each request id counts once. */
  readonly grants: number;
  /** The actions, each with the condition to wait for after it. */
  steps(cluster: Cluster): Steps;
}

export interface ClusterInit extends Start {
  readonly script: Script;
}

/** Called when a process ends. */
export interface Client {
  lost(node: SimNode): void;
}

const NODES = 3;
const SEED_DEFAULT = 1;
const START_MILLIS = 1_700_000_000_000;
const COMPLETION_MILLIS = 0.3;
/** A process cannot start at the very moment it dies. */
const AT_ONCE_MILLIS = 1;
/** By then the other nodes have elected a leader and made progress. */
const LATER_MILLIS = 120;
/** From the start of a run to its end, with any crash. */
const FINISH_MILLIS_MAX = 5_000;

export class Cluster implements Play {
  readonly script: Script;
  readonly nodes: readonly SimNode[];
  readonly raft: RaftChecker;
  readonly limits: LimitChecker;
  readonly story: Story;
  readonly clients = new Set<Client>();
  readonly #loop = new EventLoop(START_MILLIS);
  readonly #boundaries: Boundaries;
  /** Stopped by the script. */
  readonly #away = new Set<SimNode>();
  /** These do not return during the script. */
  readonly #dead = new Set<SimNode>();

  constructor({ script, hash, crash, seams = {}, say, seed = SEED_DEFAULT }: ClusterInit) {
    this.script = script;
    this.#boundaries = new Boundaries(crash, () => this);
    if (!script.countsLate) this.#boundaries.countFromHere();
    const now = (): number => this.now;
    const after = (delay: number, run: () => void): void => this.after(delay, run);
    const random = new Random(seed);
    const settings = settingsOf({ ...script, nodes: NODES, spares: 0, partitions: 1, replicas: NODES });
    const ids = settings.config.nodes.map(({ id }) => id);
    this.story = new Story(now, say);
    const { story } = this;
    const network = new SimNetwork({
      settings: settings.network,
      random: random.fork(),
      story,
      ids,
      after,
      now,
      endpoint: (id) => this.node(id),
    });
    this.limits = new LimitChecker({
      tables: settings.tables,
      expectOutcome: (group, index, outcome) => this.raft.expectOutcome(group, index, outcome),
    });
    this.raft = new RaftChecker({
      now,
      story,
      driftPpm: settings.maxDriftPpm,
      mayBeLate: true,
      gainedBetween: () => 0,
      foundersOf: () => ids,
      led: () => {},
      committed: (group, committed) => {
        if (group === GROUP) this.limits.committed(group, committed);
      },
    });
    const world = this.#nodeWorld({ settings, random, hash, seams, network });
    this.nodes = ids.map((id) => new SimNode(id, world));
    for (const node of this.nodes) node.start();
  }

  #nodeWorld(given: Pick<NodeWorld, 'settings' | 'random' | 'hash' | 'seams' | 'network'>): NodeWorld {
    const { story } = this;
    return {
      ...given,
      story,
      now: () => this.now,
      after: (delay, run) => this.after(delay, run),
      soon: (run) => this.#loop.soon(run),
      settling: () => this.#loop.settling(),
      completionMillis: COMPLETION_MILLIS,
      durable: (node, writes) => {
        this.raft.written(node, writes);
        this.#boundaries.durable(writes);
      },
      groupAdded: (node, group, app, applied) => this.raft.observe(node, group, app, applied),
      sending: (node, to, type, payload) => {
        if (type === 'peerMessages') this.raft.sending(node, to, payload);
      },
      reached: (id, boundary) => {
        this.reached(this.node(id), boundary);
      },
      directoryLost: (node) => this.raft.lost(node),
      ended: (id) => {
        story.report(() => `node ${id} is down`);
        this.raft.ended(id);
        for (const client of this.clients) client.lost(this.node(id));
      },
      violated: (violation) => this.#loop.violated(violation),
    };
  }

  get now(): number {
    return this.#loop.now;
  }

  /** A crash took a node away for the rest of the script. */
  get hasDead(): boolean {
    return this.#dead.size > 0;
  }

  /** The boundaries of the script in order, up to the crash. */
  get points(): readonly Point[] {
    return this.#boundaries.points;
  }

  get chunksInstalled(): number {
    return this.#boundaries.chunksInstalled;
  }

  after(delayMillis: number, run: () => void): void {
    this.#loop.after(delayMillis, run);
  }

  node(id: NodeId): SimNode {
    const node = this.nodes[id - 1];
    if (node === undefined) throw new RangeError(`there is no node ${id}`);
    return node;
  }

  /** A boundary: the node may die here. Returns false if it did. */
  reached(node: SimNode, kind: PointKind): boolean {
    return this.#boundaries.reached(node, kind);
  }

  crashed(victim: SimNode, returns: Variant['returns']): void {
    if (returns === 'never') this.#dead.add(victim);
    else this.#startAfter(victim, returns === 'later');
    // The script may count on a quorum, so nodes that it stopped must help out.
    if (this.hasDead) for (const one of this.#away) this.#startAfter(one, false);
  }

  /** For scripts that count late. */
  countFromHere(): void {
    this.#boundaries.countFromHere();
  }

  /** All nodes crash and start again. */
  cutPower(): void {
    for (const node of this.nodes) {
      node.crash('lost');
      this.#startAfter(node, false);
    }
  }

  #startAfter(node: SimNode, isLate: boolean): void {
    this.#away.delete(node);
    this.after(isLate ? LATER_MILLIS : AT_ONCE_MILLIS, () => {
      if (!this.#away.has(node)) node.start();
    });
  }

  /** Stops a node for a part of the script, if the others can do without it. */
  stop(node: SimNode): void {
    if (this.hasDead || this.nodes.some((other) => other !== node && !other.isUp)) return;
    this.#away.add(node);
    node.crash('lost');
  }

  /** Ends an absence. */
  start(node: SimNode): void {
    if (this.#away.delete(node)) node.start();
  }

  /** Brings back a node that was to stay away. */
  revive(): void {
    for (const node of this.#dead) node.start();
    this.#dead.clear();
  }

  get leader(): SimNode | undefined {
    const leaders = this.nodes.filter((node) => this.#status(node)?.role === 'leader');
    return leaders.sort((a, b) => (this.#status(b)?.term ?? 0) - (this.#status(a)?.term ?? 0))[0];
  }

  #status(node: SimNode): ReturnType<NonNullable<SimNode['core']>['raft']['status']> {
    return node.core?.raft.status(GROUP);
  }

  /** Runs the script, then the final checks. Throws a Violation. */
  run(): Promise<void> {
    const after = (delay: number, run: () => void): void => this.after(delay, run);
    follow(this.script.steps(this), after, () => {
      this.#boundaries.countNoFurther();
      this.revive();
      follow(this.#finale(), after, () => this.#loop.end());
    });
    this.after(FINISH_MILLIS_MAX, () =>
      this.#loop.violated(new Violation(`not done in ${FINISH_MILLIS_MAX} ms\n${this.#explain()}`)),
    );
    return this.#loop.run();
  }

  /** All nodes end up with everything that was committed, and with nothing else. */
  *#finale(): Steps {
    yield () => this.nodes.every((node) => this.#hasEverything(node));
    const expected = this.limits.stateDigest(GROUP);
    for (const node of this.nodes) {
      const digests = [...(node.core?.partitions.values() ?? [])].map((app) => digestOfItems(app.inspect()));
      this.#check(
        digests.join() === String(expected),
        `the state of node ${node.id} is not what the log says`,
      );
    }
    this.#check(
      this.limits.grants === this.script.grants,
      `the log has ${this.limits.grants} grants instead of ${this.script.grants}`,
    );
  }

  #hasEverything(node: SimNode): boolean {
    const isLed = (this.#status(node)?.leader ?? 0) !== 0;
    return isLed && [META_GROUP, GROUP].every((group) => this.raft.hasEverything(group, node.id));
  }

  #check(condition: boolean, message: string): void {
    if (!condition) throw new Violation(`${message}\n${this.#explain()}`);
  }

  #explain(): string {
    return this.nodes
      .map((node) => {
        const status = this.#status(node);
        if (status === undefined) return `node ${node.id}: ${node.state}`;
        const { role, term, leader, logStart, applied, commit, lastIndex } = status;
        return (
          `node ${node.id}: ${role}, term ${term}, leader ${leader}, log ${logStart}..${lastIndex}, ` +
          `applied ${applied}, commit ${commit}`
        );
      })
      .join('\n');
  }
}
