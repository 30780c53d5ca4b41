/**
 * Golden transcripts: a script of commands for a group of cores, and the exact messages, role changes and writes they
 * cause. The files in transcripts/ are documentation as much as tests. A block is one command, `----`, and the events
 * that followed; everything before the first block of a paragraph that starts with `#` is commentary.
 *
 *   nodes N [one-by-one]     N followers with empty logs; `one-by-one`: an append carries one entry
 *   log N 1 1 2              node N's durable log has entries of these terms, and the node is in the last one's term
 *   term N T                 node N's disk says term T
 *   tick N K                 K ticks pass on node N
 *   campaign N               node N starts an election
 *   propose N TEXT           node N, if it leads, appends TEXT
 *   write N                  node N hands new entries to its disk; nothing is on it yet
 *   sync N                   node N's disk finishes the write in flight (or, if there is none, the next one)
 *   deliver [A->B] [drop]    messages that left so far arrive, in order: all, or those of one link; `drop` loses them
 *   settle                   sync and deliver until nothing happens any more
 *   compact N INDEX          node N has a snapshot up to INDEX and forgets the log before it
 *   crash N                  node N loses everything that is not on its disk
 *   forget N                 node N saw its leader's connection break
 *   transfer N M             node N hands leadership to node M
 *   join N                   node N starts with an empty log, and knows of no voter
 *   change N E promote 4 remove 2 ...   node N, if it leads, changes the members in the name of placement E
 *   read N                   node N is asked for an index to read at
 *   status                   one line per node
 */
import { RAFT_DEFAULTS, type RaftOptions, type RandomBelow } from '../../raft/core-state.ts';
import type { MembershipStep } from '../../raft/membership.ts';
import type { Entry, Message, NodeId } from '../../raft/types.ts';
import { describe, describeEntry, statusOf, writeOf } from './described.ts';
import { Invariants, type ObservedNetwork } from './invariants.ts';
import { withChunks } from './machine.ts';
import { type NodeOptions, type Surroundings, TestNode } from './node.ts';
import { entriesAfter, storedLog } from './stored-log.ts';

const OPTIONS: RaftOptions = { ...RAFT_DEFAULTS, electionTicks: 10, heartbeatTicks: 1 };

const STEPS = ['addLearner', 'promote', 'demote', 'remove'] as const;

export class Transcript implements ObservedNetwork, Surroundings {
  readonly #nodes = new Map<NodeId, TestNode>();
  /** By node: its role as last reported. */
  readonly #reported = new Map<NodeId, string>();
  #wire: Message[] = [];
  #lines: string[] = [];
  #founders: readonly NodeId[] = [];
  options: NodeOptions = { raft: OPTIONS };
  readonly invariants = new Invariants(this);
  readonly now = 1_700_000_000_000;
  readonly random: RandomBelow = () => 0;

  get nodes(): TestNode[] {
    return [...this.#nodes.values()];
  }

  /** Unknown once a node has joined. */
  get voters(): readonly TestNode[] | undefined {
    return this.#nodes.size === this.#founders.length ? this.nodes : undefined;
  }

  /** Runs one command and returns the events that it caused, one per line. */
  run(command: string): string {
    this.#lines = [];
    const [verb = '', ...words] = command.trim().split(/\s+/);
    this.#do(verb, words);
    return this.#lines.length === 0 ? 'nothing' : this.#lines.join('\n');
  }

  #do(verb: string, words: readonly string[]): void {
    const node = (): TestNode => this.#node(Number(words[0]));
    switch (verb) {
      case 'nodes':
        if (words.includes('one-by-one')) this.options = { raft: { ...OPTIONS, appendBytesMax: 1 } };
        this.#found(Number(words[0]));
        return;
      case 'join':
        this.#add(Number(words[0]), []);
        return;
      case 'term':
        this.#preset(node(), node().stored?.entries ?? [], Number(words[1]));
        return;
      case 'log':
        this.#presetLog(node(), words.slice(1).map(Number));
        return;
      case 'tick':
        for (let i = 0; i < Number(words[1]); i += 1) node().core.tick();
        break;
      case 'campaign':
        node().core.campaign();
        break;
      case 'propose': {
        const data = new TextEncoder().encode(words.slice(1).join(' '));
        if (node().core.propose(data) === undefined) this.#lines.push(`${words[0]} refuses`);
        break;
      }
      case 'write':
        this.#write(node());
        break;
      case 'sync':
        this.#sync(node());
        break;
      case 'deliver':
        this.#deliver(
          words.find((word) => word.includes('->')),
          words.includes('drop'),
        );
        break;
      case 'settle':
        this.#settle();
        break;
      case 'compact':
        this.#compact(node(), Number(words[1]));
        break;
      case 'crash':
        this.#crash(node());
        return;
      case 'forget':
        node().core.forgetLeader(1);
        break;
      case 'transfer':
        node().core.transferLeadership(Number(words[1]));
        break;
      case 'change':
        this.#change(node(), Number(words[1]), words.slice(2));
        break;
      case 'read':
        if (node().core.requestRead() === undefined) this.#lines.push(`${words[0]} refuses`);
        break;
      case 'status':
        for (const each of this.nodes) this.#lines.push(statusOf(each));
        return;
      default:
        throw new Error(`unknown command ${verb}`);
    }
    this.#collect();
  }

  #presetLog(node: TestNode, terms: readonly number[]): void {
    this.#preset(node, entriesAfter(0, terms, String), terms.at(-1) ?? 0);
  }

  #node(id: NodeId): TestNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  #found(count: number): void {
    this.#founders = Array.from({ length: count }, (_, i) => i + 1);
    for (const id of this.#founders) this.#add(id, this.#founders);
  }

  #add(id: NodeId, voters: readonly NodeId[]): void {
    const node = new TestNode(id, this, voters);
    this.#nodes.set(id, node);
    node.start();
  }

  /** The initial contents of its disk. */
  #preset(node: TestNode, entries: readonly Entry[], term: number): void {
    node.startFrom({ ...storedLog([], { term }), entries: [...entries] });
  }

  #change(node: TestNode, epoch: number, words: readonly string[]): void {
    const steps: MembershipStep[] = [];
    for (let i = 0; i < words.length; i += 2) {
      const kind = STEPS.find((known) => known === words[i]);
      if (kind === undefined) throw new Error(`unknown step ${words[i]}`);
      steps.push({ kind, node: Number(words[i + 1]) });
    }
    const begun = node.core.changeMembership(steps, epoch);
    if (typeof begun === 'string') this.#lines.push(`${node.id} refuses: ${begun}`);
  }

  #write(node: TestNode): void {
    node.write();
    const { writing } = node;
    if (writing !== undefined) this.#lines.push(`${node.id} writes ${writeOf(writing)}`);
  }

  #sync(node: TestNode): void {
    if (!node.isWriting) this.#write(node);
    if (!node.isWriting) return;
    this.#lines.push(`${node.id} synced`);
    node.complete();
  }

  #deliver(link: string | undefined, drop: boolean): void {
    const isMeant = (m: Message): boolean => link === undefined || link === `${m.from}->${m.to}`;
    const meant = this.#wire.filter(isMeant);
    this.#wire = this.#wire.filter((message) => !isMeant(message));
    for (const message of meant) {
      if (drop) this.#lines.push(`lost  ${describe(message)}`);
      else this.#arrive(message);
    }
  }

  #arrive(message: Message): void {
    const target = this.#node(message.to);
    if (message.type !== 'snapshot') {
      target.core.step(message);
      return;
    }
    // The driver streams the stored snapshot; here it arrives at once, and its arrival is reported to the sender.
    const sender = this.#node(message.from);
    const { snapshot } = sender;
    if (snapshot === undefined) throw new Error(`node ${sender.id} sends a snapshot that it does not have`);
    target.core.step({ ...message, meta: withChunks(snapshot) });
    sender.core.snapshotDone(message.to, 'arrived');
  }

  #settle(): void {
    // A message may arrive and cause nothing until its write in the next round, so one quiet round is not enough.
    let quietRounds = 0;
    for (let round = 0; round < 100; round += 1) {
      const before = this.#lines.length;
      this.#collect();
      for (const node of this.nodes) this.#sync(node);
      this.#collect();
      this.#deliver(undefined, false);
      this.#collect();
      quietRounds = this.#lines.length === before && this.#wire.length === 0 ? quietRounds + 1 : 0;
      if (quietRounds === 2) return;
    }
    throw new Error('the group does not settle');
  }

  #compact(node: TestNode, index: number): void {
    if (node.machine.index !== index) throw new Error(`node ${node.id} has applied ${node.machine.index}`);
    node.writeSnapshot();
    node.complete();
  }

  #crash(node: TestNode): void {
    node.crash();
    node.start();
    this.#reported.delete(node.id);
    this.#lines.push(`${node.id} restarts: ${statusOf(node)}`);
  }

  /** Applies committed entries, and records the messages that left and the changes of roles. */
  #collect(): void {
    for (const node of this.nodes) {
      this.invariants.observe(node);
      node.send();
      const applied = node.apply();
      if (applied.length > 0) this.#lines.push(`${node.id} applies ${applied.map(describeEntry).join(' ')}`);
      node.send();
      for (const { index } of node.core.takeReads()) this.#lines.push(`${node.id} may read at ${index}`);
      const { role, term } = node.core;
      const reported = `${node.id} is ${role} of term ${term}`;
      const before = this.#reported.get(node.id);
      if (reported !== before && (before !== undefined || term > 0)) this.#lines.push(reported);
      this.#reported.set(node.id, reported);
    }
  }

  post(_from: TestNode, message: Message): void {
    this.#wire.push(message);
    this.#lines.push(describe(message));
  }
}
