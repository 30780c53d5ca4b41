/**
 * Nodes with the real driver, a network that a test can partition, and time that a test advances. Nodes join, crash and
 * come back. After every event they must agree (agreement.ts).
 */
import { assert } from '../../../raft/assert.ts';
import type { RandomBelow } from '../../../raft/core-state.ts';
import type { MembershipResult, MultiRaftOptions } from '../../../raft/driver/multi-raft.ts';
import type { PeerMessage } from '../../../raft/driver/peer-message.ts';
import type { MembershipChange } from '../../../raft/membership.ts';
import type { GroupConfig, GroupId, NodeId } from '../../../raft/types.ts';
import { seeded } from '../seeded.ts';
import { Agreement } from './agreement.ts';
import { Node, type Surroundings } from './node.ts';
import { DRIVER_OPTIONS, ELECTION_TICKS, GROUP, TICK_MILLIS } from './options.ts';
import type { Parcel } from './parcel.ts';

export interface ClusterOptions {
  /** How many nodes begin as voters of every group, numbered from 1. */
  readonly voters: number;
  /** How many groups, numbered from 1. Default: 1. */
  readonly groups?: number;
  readonly seed?: number;
  readonly options?: Partial<MultiRaftOptions>;
}

export class Cluster implements Surroundings {
  readonly groups: readonly GroupId[];
  readonly options: MultiRaftOptions;
  readonly random: RandomBelow;
  readonly agreement = new Agreement();
  readonly nodes = new Map<NodeId, Node>();
  /** Sent and not delivered yet, oldest first. */
  readonly queue: Parcel[] = [];
  /** Everything that was sent, lost or not. */
  readonly sent: Parcel[] = [];
  /** True if the message arrives. */
  passes: (parcel: Parcel) => boolean = () => true;
  /** Nodes whose disk writes stay in flight. */
  readonly stalled = new Set<NodeId>();
  /** Real time in milliseconds. */
  now = 1_700_000_000_000;

  constructor({ voters, groups = 1, seed = 1, options = {} }: ClusterOptions) {
    this.groups = Array.from({ length: groups }, (_, i) => i + 1);
    this.options = { ...DRIVER_OPTIONS, ...options };
    this.random = seeded(seed);
    const ids = Array.from({ length: voters }, (_, i) => i + 1);
    for (const id of ids) this.add(id, ids);
  }

  /** Starts a node; one that joins later knows no voters. */
  add(id: NodeId, voters: readonly NodeId[] = []): Node {
    const node = new Node(id, this, voters);
    this.nodes.set(id, node);
    node.start();
    return node;
  }

  node(id: NodeId): Node {
    const node = this.nodes.get(id);
    assert(node !== undefined, `there is no node ${id}`);
    return node;
  }

  get up(): Node[] {
    return [...this.nodes.values()].filter(({ isUp }) => isUp);
  }

  /** A node that is up and is none of these. */
  otherThan(...nodes: readonly Node[]): Node {
    const other = this.up.find((node) => !nodes.includes(node));
    assert(other !== undefined, 'another node is up');
    return other;
  }

  /** The leader of the highest term. */
  leaderOf(group: GroupId): Node | undefined {
    const leaders = this.up.filter((node) => node.leads(group));
    return leaders.sort((a, b) => b.statusOf(group).term - a.statusOf(group).term)[0];
  }

  get leader(): Node | undefined {
    return this.leaderOf(GROUP);
  }

  /** The last index of the group that was applied anywhere, ever. */
  get appliedMax(): number {
    return this.agreement.appliedMax(GROUP);
  }

  /** Have all that are up applied the same number of entries? Then their states are the same: agreement.ts. */
  isLevel(group = GROUP): boolean {
    return new Set(this.up.map((node) => node.appOf(group).index)).size === 1;
  }

  /** The voters according to the leader, in ascending order. */
  get voters(): readonly NodeId[] {
    return this.leader?.status.config.voters.toSorted(ascending) ?? [];
  }

  checkLeaders(): void {
    for (const group of this.groups) {
      for (const node of this.up) {
        if (node.leads(group)) this.agreement.leads(group, node.statusOf(group).term, node.id);
      }
    }
  }

  post(from: NodeId, to: NodeId, messages: readonly PeerMessage[]): void {
    for (const message of messages) {
      const parcel = { from, to, message };
      this.sent.push(parcel);
      this.queue.push(parcel);
    }
  }

  deliver(parcel: Parcel): void {
    const node = this.nodes.get(parcel.to);
    if (node?.isUp === true && this.passes(parcel)) node.raft.receive([parcel.message]);
  }

  deliverAll(): void {
    for (const parcel of this.queue.splice(0)) this.deliver(parcel);
  }

  /** Runs all turns, writes and deliveries that are due, until there are none. */
  async settle(): Promise<void> {
    for (let round = 0; round < 10_000; round += 1) {
      await chunkReads();
      let isIdle = this.queue.length === 0;
      this.deliverAll();
      for (const node of this.up) {
        if (node.hasTurn) {
          isIdle = false;
          node.turn();
        }
        if (node.isWriting && !this.stalled.has(node.id)) {
          isIdle = false;
          node.sync();
        }
      }
      this.checkLeaders();
      if (isIdle) return;
    }
    throw new Error('the cluster does not come to rest');
  }

  async tick(count = 1): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      this.now += TICK_MILLIS;
      for (const node of this.up) node.raft.tick();
      await this.settle();
    }
  }

  /** Waits until `condition` holds. */
  async until(condition: () => boolean, ticksMax = 20 * ELECTION_TICKS): Promise<void> {
    for (let i = 0; i < ticksMax && !condition(); i += 1) await this.tick();
    if (condition()) return;
    const states = this.up.flatMap((node) =>
      this.groups.map(
        (group) => `${node.id}/${group}: ${JSON.stringify(node.raft.status(group) ?? 'removed')}`,
      ),
    );
    throw new Error(`the condition never held; ${states.join('; ')}`);
  }

  /** A leader that has committed an entry of its own term. */
  async elect(group = GROUP): Promise<Node> {
    await this.until(() => {
      const status = this.leaderOf(group)?.statusOf(group);
      return status !== undefined && status.applied === status.lastIndex;
    });
    const leader = this.leaderOf(group);
    assert(leader !== undefined, 'there is a leader');
    return leader;
  }

  /** Requests a change from `node`, for the placement in effect by default. The result comes later. */
  change(
    node: Node,
    change: MembershipChange,
    epoch = node.status.config.epoch,
  ): { result?: MembershipResult } {
    const answer: { result?: MembershipResult } = {};
    node.raft.changeMembership(GROUP, change, epoch, (result) => {
      assert(answer.result === undefined, 'a change is answered only once');
      answer.result = result;
    });
    return answer;
  }

  /** Changes the members through the leader and waits until that is complete; it must succeed. */
  async changed(change: MembershipChange, epoch?: number): Promise<GroupConfig> {
    const leader = await this.elect();
    const answer = this.change(leader, change, epoch);
    await this.until(() => answer.result !== undefined);
    const { result } = answer;
    if (result?.ok !== true) throw new Error(`refused: ${result?.reason}`);
    return result.config;
  }

  /** Starts a node and adds it as a learner. */
  async joinAsLearner(id: NodeId): Promise<Node> {
    const node = this.add(id);
    await this.changed([{ kind: 'addLearner', node: id }]);
    return node;
  }

  /** Starts a node and makes it a voter. */
  async join(id: NodeId): Promise<void> {
    const node = await this.joinAsLearner(id);
    await this.until(() => node.app.index >= this.appliedMax);
    await this.changed([{ kind: 'promote', node: id }]);
  }

  /** Commits a command and waits until these nodes have applied it. */
  async commit(text: string, ids?: readonly NodeId[]): Promise<void> {
    const leader = await this.elect();
    leader.propose(text);
    const where = ids?.map((id) => this.node(id)) ?? [leader];
    await this.until(() =>
      where.every(({ app }) => app.commands.some((each) => each.split(',').includes(text))),
    );
  }

  /** Proposes one command after the other on the leader, so that each becomes an entry of its own. */
  async fill(count: number, group = GROUP): Promise<void> {
    const leader = await this.elect(group);
    for (let i = 0; i < count; i += 1) {
      leader.propose(`${leader.id}/${group}/${i}/${'x'.repeat(40)}`, group);
      await this.settle();
    }
  }

  /** Cuts these nodes off from all others; they still reach each other. */
  isolate(...ids: readonly NodeId[]): void {
    this.passes = ({ from, to }) => ids.includes(from) === ids.includes(to);
  }

  /** From now on these messages do not arrive; returns the list into which they go. */
  hold(isMeant: (parcel: Parcel) => boolean): readonly Parcel[] {
    const held: Parcel[] = [];
    this.passes = (parcel) => {
      const isHeld = isMeant(parcel);
      if (isHeld) held.push(parcel);
      return !isHeld;
    };
    return held;
  }

  heal(): void {
    this.passes = () => true;
  }
}

export const ascending = (a: NodeId, b: NodeId): number => a - b;

/** Why a change was refused; undefined if it was not. */
export function refusalOf({ result }: ReturnType<Cluster['change']>): string | undefined {
  return result?.ok === false ? result.reason : undefined;
}

/** Lets the promises of reads of the store settle. */
export async function chunkReads(): Promise<void> {
  for (let i = 0; i < 8; i += 1) await Promise.resolve();
}
