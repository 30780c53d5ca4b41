/**
 * A cluster of whole nodes that follows a script of membership changes, and crashes at one boundary of it or at none.
 * It is a world of the seeds with all its checkers, where only durations are left to chance.
 */
import { META_GROUP } from '../../../src/meta/cluster-placement.ts';
import type { NodeChange } from '../../../src/api/cluster-change.ts';
import type { GroupConfig, GroupId, NodeId } from '../../../raft/types.ts';
import type { AllowRequest } from '../../../src/api/request.ts';
import { groupOfPartition } from '../../../src/partition/placement.ts';
import { disagreement, livingMembers, outsiders, stateOf } from '../agreement.ts';
import { bothWays } from '../cuts.ts';
import type { SimNode } from '../sim-node.ts';
import { digestOfItems } from '../state-digest.ts';
import { check, type Story, Violation } from '../story.ts';
import { World } from '../world.ts';
import { Boundaries } from './boundaries.ts';
import type { Point, Variant } from './crash.ts';
import type { Play, Start } from './enumerate.ts';
import { LIMIT, type Scene, settingsOf } from './settings.ts';
import { all, type Condition, follow, type Steps } from './steps.ts';

export interface NodeScript extends Scene {
  readonly name: string;
  /** The final members of the cluster. */
  readonly members: readonly NodeId[];
  /** The actions, each with the condition to wait for after it. */
  steps(run: NodeRun): Steps;
}

const SEED_DEFAULT = 1;
const COMPLETION_MILLIS = 0.3;
/** A process cannot start at the very moment it dies. */
const AT_ONCE_MILLIS = 1;
/** By then the other nodes have elected leaders and made progress. */
const LATER_MILLIS = 300;
const AGAIN_MILLIS = 20;
/** Less than a window, so nothing is forgotten in a run. A client that is refused once dials again seconds later. */
const FINISH_MILLIS_MAX = 40_000;

export class NodeRun implements Play {
  readonly world: World;
  readonly #script: NodeScript;
  readonly #boundaries: Boundaries;
  /** The sum charged to the user of each partition. */
  readonly #charged: number[];
  #grants = 0;

  constructor({ script, crash, seed = SEED_DEFAULT, ...init }: Start & { readonly script: NodeScript }) {
    this.#script = script;
    this.#charged = Array.from({ length: script.partitions }, () => 0);
    const boundaries = new Boundaries(crash, () => this);
    this.#boundaries = boundaries;
    this.world = new World({
      ...init,
      seed,
      settings: settingsOf(script),
      witness: {
        completionMillis: COMPLETION_MILLIS,
        reached: (node, boundary) => void boundaries.reached(node, boundary),
        durable: (writes) => boundaries.durable(writes),
      },
    });
    this.world.clients.isActive = false;
    this.world.onEnded = () => {};
  }

  get nodes(): readonly SimNode[] {
    return this.world.nodes;
  }

  get story(): Story {
    return this.world.story;
  }

  get points(): readonly Point[] {
    return this.#boundaries.points;
  }

  get chunksInstalled(): number {
    return this.#boundaries.chunksInstalled;
  }

  crashed(victim: SimNode, returns: Variant['returns']): void {
    this.world.after(returns === 'later' ? LATER_MILLIS : AT_ONCE_MILLIS, () => victim.start());
  }

  countFromHere(): void {
    this.#boundaries.countFromHere();
  }

  get #partitions(): readonly number[] {
    return this.#charged.map((_, partition) => partition);
  }

  get #groups(): readonly GroupId[] {
    return [META_GROUP, ...this.#partitions.map(groupOfPartition)];
  }

  /** A grant in every partition, each with its own id, of `cost` or of everything that is left. */
  grantEverywhere(id: string, cost?: number): Condition {
    return all(
      this.#partitions.map((partition) => {
        const charged = this.#charged[partition] ?? 0;
        const taken = cost ?? LIMIT - charged;
        this.#charged[partition] = charged + taken;
        this.#grants += 1;
        const request = { userId: this.#userOf(partition), requestId: `${id}${partition}`, cost: taken };
        // Each partition begins with another node.
        const from = partition % this.nodes.length;
        return this.#decided([...this.nodes.slice(from), ...this.nodes.slice(0, from)], request, 'grant');
      }),
    );
  }

  /** Asks these nodes, one after the other, until one decides. */
  #decided(nodes: readonly SimNode[], request: AllowRequest, expected: 'grant' | 'denial'): Condition {
    let isDone = false;
    let attempts = 0;
    const ask = (): void => {
      const node = nodes[attempts % nodes.length];
      attempts += 1;
      const again = (): void => this.world.after(AGAIN_MILLIS, ask);
      if (node?.isOpen !== true) {
        again();
        return;
      }
      // Asked again under its id: a request that was reported as not proposed may still enter a log this way.
      this.world.clients.attempt(node, request, 2, (answer) => {
        if (answer?.kind !== 'decision') {
          again();
          return;
        }
        const { decision } = answer;
        check(
          decision.allowed === (expected === 'grant'),
          () => `${JSON.stringify(request)} got ${JSON.stringify(decision)}`,
        );
        isDone = true;
      });
    };
    ask();
    return () => isDone;
  }

  #userOf(partition: number, prefix = 'user'): string {
    for (let i = 0; ; i += 1) {
      if (this.world.partitionOf(`${prefix}${i}`) === partition) return `${prefix}${i}`;
    }
  }

  /** No partition has its whole log any more, so a new member needs snapshots. */
  get isCompacted(): boolean {
    return this.#partitions.every((partition) => {
      const starts = this.nodes.map((node) => statusOf(node, groupOfPartition(partition))?.logStart ?? 2);
      return starts.every((start) => start > 1);
    });
  }

  /** The operator asks for a change of members until it is accepted, and starts the new node. */
  *change(change: NodeChange): Steps {
    const { operator } = this.world;
    operator.change(change);
    yield () => operator.isIdle;
    if (change.add !== undefined) this.world.node(change.add.id).begin();
  }

  get isSettled(): boolean {
    return this.world.isSettled;
  }

  /** The number of partition replicas that these nodes hold. */
  replicasOn(ids: readonly NodeId[]): number {
    const held = ids.map((id) => this.world.node(id).core?.partitions.size ?? 0);
    return held.reduce((sum, size) => sum + size, 0);
  }

  /** Stops a node until it is started again. */
  stop(id: NodeId): void {
    this.world.node(id).crash('lost');
  }

  start(id: NodeId): void {
    this.world.node(id).start();
  }

  /** These nodes hear nothing from each other for the given time. All other paths work. */
  part(ids: readonly NodeId[], millis: number): Condition {
    const { network } = this.world;
    const paths = bothWays(ids, ids).filter(([from, to]) => from !== to);
    for (const [from, to] of paths) network.cut(from, to);
    let isOver = false;
    this.world.after(millis, () => {
      for (const [from, to] of paths) network.heal(from, to);
      isOver = true;
    });
    return () => isOver;
  }

  /** Runs the script, then the final checks. Throws a Violation. */
  run(): Promise<void> {
    const { world } = this;
    const after = (delay: number, run: () => void): void => world.after(delay, run);
    follow(this.#script.steps(this), after, () => {
      this.#boundaries.countNoFurther();
      follow(this.#finale(), after, () => world.end());
    });
    world.after(FINISH_MILLIS_MAX, () => {
      throw new Violation(
        `not done in ${FINISH_MILLIS_MAX} ms: ${this.unfinished ?? 'a client still waits'}\n${stateOf(world)}`,
      );
    });
    return world.run();
  }

  /** The change is finished, all nodes agree on it, every node gets grants in every partition, and nothing is lost. */
  *#finale(): Steps {
    const { world } = this;
    yield () => this.unfinished === undefined;
    const { nodes = [], leaving = [] } = world.meta ?? {};
    const ids = nodes.map(({ id }) => id).join();
    check(
      ids === this.#script.members.join() && leaving.length === 0,
      () => `these belong to the cluster: ${ids}, and ${leaving.length} that leave`,
    );
    for (const node of livingMembers(world)) {
      yield all(this.#partitions.map((partition) => this.#grantAt(node, partition)));
    }
    yield this.grantEverywhere('last');
    yield all(
      this.#partitions.map((partition) =>
        this.#decided(livingMembers(world), { userId: this.#userOf(partition) }, 'denial'),
      ),
    );
    yield () => this.unfinished === undefined;
    for (const partition of this.#partitions) this.#checkStates(partition);
    check(
      world.limits.grants === this.#grants,
      () => `the logs have ${world.limits.grants} grants instead of ${this.#grants}`,
    );
    world.clients.checkObserved();
  }

  #grantAt(node: SimNode, partition: number): Condition {
    this.#grants += 1;
    const userId = this.#userOf(partition, `probe${node.id}-`);
    return this.#decided([node], { userId, requestId: `for ${userId}` }, 'grant');
  }

  /** The first condition that does not hold yet; undefined if all do. */
  get unfinished(): string | undefined {
    const { world } = this;
    if (!world.isSettled) return 'the change of the nodes is not finished';
    const members = livingMembers(world);
    const down = [...members, ...outsiders(world)].find(({ isUp }) => !isUp);
    if (down !== undefined) return `node ${down.id} is not up`;
    const known = JSON.stringify(world.meta);
    const ignorant = members.find(({ core }) => JSON.stringify(core?.meta?.state) !== known);
    if (ignorant !== undefined) return `node ${ignorant.id} knows another list of nodes`;
    return disagreement(world, members) ?? this.#misconfigured(members) ?? this.#incomplete();
  }

  /** A replica may count the entries of a snapshot as applied shortly before their state is there. */
  #incomplete(): string | undefined {
    const { placement, raft } = this.world;
    for (const group of this.#groups) {
      const { voters, learners } = placement.membersOf(group);
      const found = [...voters, ...learners].find((id) => !raft.hasEverything(group, id));
      if (found !== undefined) return `node ${found} does not have all of group ${group}`;
    }
    return undefined;
  }

  /** Every group has the members that are wanted, both as committed and as each member knows it. */
  #misconfigured(nodes: readonly SimNode[]): string | undefined {
    const { placement, raft } = this.world;
    for (const group of this.#groups) {
      const wanted = wordsOf({ outgoing: [], ...placement.membersOf(group) });
      if (wordsOf(raft.configOf(group)) !== wanted) return `group ${group} has other members than wanted`;
      const stranger = nodes.find((node) => {
        const config = statusOf(node, group)?.config;
        return config !== undefined && wordsOf(config) !== wanted;
      });
      if (stranger !== undefined) return `node ${stranger.id} knows other members of group ${group}`;
    }
    return undefined;
  }

  #checkStates(partition: number): void {
    const { limits, placement } = this.world;
    const expected = limits.stateDigest(groupOfPartition(partition));
    for (const id of placement.replicasOf(partition)) {
      const app = this.world.node(id).core?.partitions.get(partition);
      check(
        app !== undefined && digestOfItems(app.inspect()) === expected,
        () => `the state of partition ${partition} on node ${id} is not what the log says`,
      );
    }
  }
}

function statusOf(
  { core }: SimNode,
  group: GroupId,
): ReturnType<NonNullable<SimNode['core']>['raft']['status']> {
  return core?.raft.status(group);
}

function wordsOf(config: Pick<GroupConfig, 'voters' | 'outgoing' | 'learners'>): string {
  const { voters, outgoing, learners } = config;
  return `${sorted(voters)} (${sorted(outgoing)}), learners ${sorted(learners)}`;
}

function sorted(ids: readonly NodeId[]): string {
  return [...ids].sort((a, b) => a - b).join(' ');
}
