/**
 * A group of Raft cores in one thread, with virtual time and a network that loses, holds, repeats and reorders
 * messages. Nothing happens unless a test asks for it, and the invariants are checked after every event.
 */
import type { RandomBelow } from '../../raft/core-state.ts';
import type { RaftCore } from '../../raft/core.ts';
import type { RaftStatus } from '../../raft/status.ts';
import type { Entry, Message, NodeId, StoredGroup } from '../../raft/types.ts';
import type { Fate } from '../../storage/memory-store.ts';
import { Invariants, type ObservedNetwork } from './invariants.ts';
import { withChunks } from './machine.ts';
import { type NodeOptions, type Surroundings, TestNode } from './node.ts';
import { seeded } from './seeded.ts';
import { watchdog } from './watchdog.ts';

const TICK_MILLIS = 10;

export interface NetworkOptions extends NodeOptions {
  readonly nodes: number;
  readonly seed?: number;
  /** The disks of nodes at start. */
  readonly stored?: ReadonlyMap<NodeId, StoredGroup>;
}

export interface Envelope {
  readonly message: Message;
  /** The process of the sender: only that process hears if a snapshot arrived. */
  readonly sender: RaftCore;
}

export class Network implements ObservedNetwork, Surroundings {
  readonly options: NetworkOptions;
  readonly ids: readonly NodeId[];
  readonly random: RandomBelow;
  readonly invariants: Invariants;
  readonly #nodes = new Map<NodeId, TestNode>();
  readonly #cut = new Set<string>();
  #hold: ((message: Message) => boolean) | undefined;
  /** Real time in milliseconds. */
  now = 1_700_000_000_000;
  /** Sent and not delivered yet, oldest first. */
  readonly queue: Envelope[] = [];
  /** Held back by `hold`, in the order they were sent. */
  readonly held: Envelope[] = [];
  /** Everything that was ever sent and not refused by a cut link. */
  readonly sent: Message[] = [];

  constructor(options: NetworkOptions) {
    this.options = options;
    this.ids = Array.from({ length: options.nodes }, (_, i) => i + 1);
    this.random = seeded(options.seed ?? 1);
    this.invariants = new Invariants(this);
    for (const id of this.ids) this.#nodes.set(id, new TestNode(id, this, this.ids, options.stored?.get(id)));
    for (const node of this.nodes) {
      node.start();
      node.pump();
    }
  }

  get nodes(): TestNode[] {
    return [...this.#nodes.values()];
  }

  get voters(): TestNode[] {
    return this.nodes;
  }

  get up(): TestNode[] {
    return this.nodes.filter((node) => node.isUp);
  }

  node(id: NodeId): TestNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  core(id: NodeId): RaftCore {
    return this.node(id).core;
  }

  /** The public state of a node, for comparisons; a core itself is not printable. */
  status(id: NodeId): RaftStatus & { readonly id: NodeId } {
    return { id, ...this.core(id).status() };
  }

  get leaderStatus(): (RaftStatus & { readonly id: NodeId }) | undefined {
    const { leader } = this;
    return leader && this.status(leader.id);
  }

  /** The leader of the highest term, if there is one. */
  get leader(): RaftCore | undefined {
    const leaders = this.up.map((node) => node.core).filter((core) => core.role === 'leader');
    return leaders.sort((a, b) => b.term - a.term)[0];
  }

  /** Does something to one node and lets the consequences leave it. */
  act<T>(id: NodeId, action: (core: RaftCore) => T): T {
    const node = this.node(id);
    watchdog.feed();
    const result = action(node.core);
    this.invariants.observe(node);
    node.pump();
    this.invariants.observe(node);
    return result;
  }

  propose(id: NodeId, text: string): Entry | undefined {
    return this.act(id, (core) => core.propose(new TextEncoder().encode(text)));
  }

  /** Proposes on `id`, which must lead, and lets the cluster settle. */
  commit(id: NodeId, text: string): Entry {
    const entry = this.propose(id, text);
    if (entry === undefined) throw new Error(`node ${id} refused '${text}'`);
    this.settle();
    return entry;
  }

  /** Makes `id` the leader, if the nodes that it can reach allow that: they no longer protect an earlier leader. */
  elect(id: NodeId): void {
    for (const node of this.up) node.core.forgetLeader(1_000_000);
    this.act(id, (core) => core.campaign());
    this.settle();
  }

  /** Time passes for one node alone. */
  tick(id: NodeId, count = 1): void {
    for (let i = 0; i < count; i += 1) this.act(id, (core) => core.tick());
  }

  /** Time passes on all nodes, and all messages arrive. */
  tickAll(count = 1): void {
    for (let i = 0; i < count; i += 1) {
      this.now += TICK_MILLIS;
      for (const node of this.up) this.tick(node.id);
      this.settle();
    }
  }

  post(from: TestNode, message: Message): void {
    this.invariants.sending(from, message);
    let sent = message;
    if (message.type === 'snapshot') {
      const { snapshot } = from;
      if (snapshot === undefined || this.isCut(from.id, message.to)) {
        from.core.snapshotDone(message.to, 'broken');
        return;
      }
      sent = { ...message, meta: withChunks(snapshot) };
    }
    if (this.isCut(from.id, message.to)) return;
    this.sent.push(sent);
    const envelope = { message: sent, sender: from.core };
    (this.#hold?.(sent) === true ? this.held : this.queue).push(envelope);
  }

  /** Delivers all messages on their way, and those that this causes, until none is left. */
  settle(): void {
    for (let count = 0; this.queue.length > 0; count += 1) {
      if (count > 200_000) throw new Error('the cluster does not come to rest');
      const envelope = this.queue.shift();
      if (envelope !== undefined) this.deliver(envelope);
    }
  }

  deliver({ message, sender }: Envelope): void {
    const target = this.node(message.to);
    const arrives = target.isUp && !this.isCut(message.from, message.to);
    if (arrives) {
      this.act(message.to, (core) => core.step(message));
      if ('timeMillis' in message && message.term === target.core.term) {
        target.clock.heard?.(message.term, message.timeMillis);
      }
    }
    if (message.type === 'snapshot') this.snapshotFate(sender, message.to, arrives);
  }

  /** Takes a message off the network. */
  lose({ message, sender }: Envelope): void {
    if (message.type === 'snapshot') this.snapshotFate(sender, message.to, false);
  }

  snapshotFate(sender: RaftCore, to: NodeId, arrived: boolean): void {
    const node = this.node(sender.id);
    if (node.isUp && node.core === sender)
      this.act(node.id, (core) => core.snapshotDone(to, arrived ? 'arrived' : 'broken'));
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#cut.has(`${from}>${to}`);
  }

  /** Cuts the link: nothing gets from `from` to `to` any more, messages on their way included. */
  cutOneWay(from: NodeId, to: NodeId): void {
    this.#cut.add(`${from}>${to}`);
  }

  cut(a: NodeId, b: NodeId): void {
    this.cutOneWay(a, b);
    this.cutOneWay(b, a);
  }

  isolate(id: NodeId): void {
    for (const other of this.ids) if (other !== id) this.cut(id, other);
  }

  /** Only nodes on the same side reach each other. */
  partition(...sides: readonly (readonly NodeId[])[]): void {
    this.heal();
    for (const side of sides) {
      for (const id of side) {
        for (const other of this.ids) if (!side.includes(other)) this.cut(id, other);
      }
    }
  }

  heal(): void {
    this.#cut.clear();
  }

  /** From now on, messages for which `predicate` holds stay in `held`. */
  hold(predicate: (message: Message) => boolean): void {
    this.#hold = predicate;
  }

  /** Stops holding; the held messages are on their way again, before all others. */
  release(): void {
    this.#hold = undefined;
    this.queue.unshift(...this.held.splice(0));
  }

  crash(id: NodeId, fate: Fate = 'lost'): void {
    this.node(id).crash(fate);
  }

  restart(id: NodeId): void {
    this.node(id).start();
    this.act(id, () => {});
  }
}
