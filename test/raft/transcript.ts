/**
 * Golden transcripts: a script of commands for a group of cores, and the exact messages, role changes and writes they
 * cause. The files in transcripts/ are documentation as much as tests. A block is one command, `----`, and what
 * happened; everything before the first block of a paragraph that starts with `#` is commentary.
 *
 *   nodes N [one-by-one]     N followers with empty logs; `one-by-one`: an append carries one entry
 *   log N 1 1 2              node N's durable log has entries of these terms, and the node is in the last one's term
 *   term N T                 node N's disk says term T
 *   tick N K                 K ticks pass on node N
 *   campaign N               node N starts an election
 *   propose N TEXT           node N, if it leads, appends TEXT
 *   write N                  node N hands what is new to its disk; nothing is on it yet
 *   sync N                   node N's disk finishes what was handed to it (and is handed the rest first, if nothing was)
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
import { RAFT_DEFAULTS, type RaftOptions } from '../../raft/core-state.ts';
import { RaftCore } from '../../raft/core.ts';
import type { Ready } from '../../raft/ready.ts';
import { LOG_START } from '../../raft/log.ts';
import { decodeConfig, type MembershipStep } from '../../raft/membership.ts';
import type { Entry, GroupConfig, Message, NodeId, SnapshotMeta } from '../../raft/types.ts';
import { NEVER_PLACED } from './never-placed.ts';

const OPTIONS: RaftOptions = { ...RAFT_DEFAULTS, electionTicks: 10, heartbeatTicks: 1 };

interface Disk {
  term: number;
  vote: NodeId;
  commit: number;
  entries: Entry[];
  snapshot: SnapshotMeta | undefined;
}

interface Node {
  readonly id: NodeId;
  /** Those it started with. */
  readonly voters: readonly NodeId[];
  core: RaftCore;
  disk: Disk;
  inFlight: Ready | undefined;
  told: string;
}

const STEPS = ['addLearner', 'promote', 'demote', 'remove'] as const;

export class Transcript {
  readonly #nodes = new Map<NodeId, Node>();
  #wire: Message[] = [];
  #lines: string[] = [];
  #options = OPTIONS;

  /** Runs one command and returns what it caused, line by line. */
  run(command: string): string {
    this.#lines = [];
    const [verb = '', ...words] = command.trim().split(/\s+/);
    this.#do(verb, words);
    return this.#lines.length === 0 ? 'nothing' : this.#lines.join('\n');
  }

  #do(verb: string, words: readonly string[]): void {
    const node = (): Node => this.#node(Number(words[0]));
    switch (verb) {
      case 'nodes':
        if (words.includes('one-by-one')) this.#options = { ...OPTIONS, appendBytesMax: 1 };
        for (let id = 1; id <= Number(words[0]); id += 1) this.#add(id, Number(words[0]));
        return;
      case 'join':
        this.#add(Number(words[0]), 0);
        return;
      case 'term':
        node().disk.term = Number(words[1]);
        this.#crash(node());
        this.#lines = [];
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
        for (const each of this.#nodes.values()) this.#lines.push(statusOf(each));
        return;
      default:
        throw new Error(`unknown command ${verb}`);
    }
    this.#collect();
  }

  #node(id: NodeId): Node {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  #add(id: NodeId, count: number): void {
    const disk: Disk = { term: 0, vote: 0, commit: 0, entries: [], snapshot: undefined };
    const voters = Array.from({ length: count }, (_, i) => i + 1);
    const core = this.#newCore(id, voters, disk);
    this.#nodes.set(id, { id, voters, core, disk, inFlight: undefined, told: '' });
  }

  #newCore(id: NodeId, voters: readonly NodeId[], disk: Disk): RaftCore {
    return newCore(id, voters, disk, this.#options);
  }

  #change(node: Node, epoch: number, words: readonly string[]): void {
    const steps: MembershipStep[] = [];
    for (let i = 0; i < words.length; i += 2) {
      const kind = STEPS.find((known) => known === words[i]);
      if (kind === undefined) throw new Error(`unknown step ${words[i]}`);
      steps.push({ kind, node: Number(words[i + 1]) });
    }
    const begun = node.core.changeMembership(steps, epoch);
    if (typeof begun === 'string') this.#lines.push(`${node.id} refuses: ${begun}`);
  }

  #presetLog(node: Node, terms: readonly number[]): void {
    node.disk.entries = terms.map((term, i) => entryOf(i + 1, term, `${term}`));
    node.disk.term = terms.at(-1) ?? 0;
    this.#crash(node);
    this.#lines = [];
  }

  #write(node: Node): void {
    if (node.inFlight !== undefined) throw new Error(`node ${node.id} is writing already`);
    node.inFlight = node.core.ready();
    if (node.inFlight?.mustWrite === true) this.#lines.push(`${node.id} writes ${writeOf(node.inFlight)}`);
  }

  #sync(node: Node): void {
    if (node.inFlight === undefined) this.#write(node);
    const ready = node.inFlight;
    node.inFlight = undefined;
    if (ready === undefined) return;
    if (ready.mustWrite) {
      applyToDisk(node.disk, ready);
      this.#lines.push(`${node.id} synced`);
    }
    node.core.advance(ready);
    for (const message of ready.afterSync) if (message.to !== node.id) this.#send(message);
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
    // The driver streams the stored snapshot; here it arrives at once, and the sender is told.
    const sender = this.#node(message.from);
    target.core.step({ ...message, meta: sender.disk.snapshot ?? message.meta });
    sender.core.snapshotDone(message.to, true);
  }

  #settle(): void {
    // A message may arrive in silence and be written in the next round, so one quiet round is not enough.
    let quietRounds = 0;
    for (let round = 0; round < 100; round += 1) {
      const before = this.#lines.length;
      this.#collect();
      for (const node of this.#nodes.values()) this.#sync(node);
      this.#collect();
      this.#deliver(undefined, false);
      this.#collect();
      quietRounds = this.#lines.length === before && this.#wire.length === 0 ? quietRounds + 1 : 0;
      if (quietRounds === 2) return;
    }
    throw new Error('it does not settle');
  }

  #compact(node: Node, index: number): void {
    const entry = node.disk.entries.find((candidate) => candidate.index === index);
    if (entry === undefined) throw new Error(`entry ${index} is not on the disk of node ${node.id}`);
    const { term, timeMillis } = entry;
    node.disk.snapshot = {
      index,
      term,
      timeMillis,
      ...node.core.config,
      chunkCount: 0,
      byteLength: 0,
    };
    node.core.compact(index);
    node.disk.entries = node.disk.entries.filter((candidate) => candidate.index > index);
  }

  #crash(node: Node): void {
    node.core = this.#newCore(node.id, node.voters, node.disk);
    node.inFlight = undefined;
    node.told = '';
    this.#lines.push(`${node.id} restarts: ${statusOf(node)}`);
  }

  /** Applies what is committed, and notes what left and who became what. */
  #collect(): void {
    for (const node of this.#nodes.values()) {
      for (const message of node.core.takeMessages()) this.#send(message);
      const applied = node.core.applicable(Number.POSITIVE_INFINITY);
      const last = applied.at(-1);
      if (last !== undefined) {
        node.core.appliedTo(last.index);
        this.#lines.push(`${node.id} applies ${applied.map(describeEntry).join(' ')}`);
        for (const message of node.core.takeMessages()) this.#send(message);
      }
      for (const { index } of node.core.takeReads()) this.#lines.push(`${node.id} may read at ${index}`);
      const { role, term } = node.core;
      const told = `${node.id} is ${role} of term ${term}`;
      if (told !== node.told && !(node.told === '' && term === 0)) this.#lines.push(told);
      node.told = told;
    }
  }

  #send(message: Message): void {
    this.#wire.push(message);
    this.#lines.push(describe(message));
  }
}

function newCore(id: NodeId, voters: readonly NodeId[], disk: Disk, options: RaftOptions): RaftCore {
  const { term, vote, commit, entries, snapshot } = disk;
  const base = snapshot ?? LOG_START;
  return new RaftCore({
    id,
    voters,
    stored: {
      ...NEVER_PLACED,
      hardState: { term, vote, commit },
      base: { index: base.index, term: base.term, timeMillis: base.timeMillis },
      entries,
      ...(snapshot !== undefined && { snapshot }),
    },
    clock: { nowMillis: () => 0, anchor: () => undefined },
    random: () => 0,
    options,
    isPreferred: false,
  });
}

function applyToDisk(disk: Disk, ready: Ready): void {
  disk.term = ready.hardState.term;
  disk.vote = ready.hardState.vote;
  disk.commit = ready.hardState.commit;
  if (ready.install !== undefined) {
    disk.snapshot = ready.install.meta;
    disk.entries = [];
  }
  const [first] = ready.entries;
  if (first === undefined) return;
  disk.entries = [...disk.entries.filter((entry) => entry.index < first.index), ...ready.entries];
}

function entryOf(index: number, term: number, text: string): Entry {
  return { index, term, timeMillis: 0, kind: 'command', data: new TextEncoder().encode(text) };
}

function statusOf({ id, core }: Node): string {
  const { role, term, leader, commit, lastIndex, match } = core.status();
  const known = [...match].map(([peer, index]) => `${peer}:${index}`).join(' ');
  const led = leader === 0 ? 'no leader' : `leader ${leader}`;
  const matches = known === '' ? '' : ` match ${known}`;
  const config = core.config.epoch === 0 ? '' : ` ${describeConfig(core.config)}`;
  return `${id} ${role} term ${term} ${led} commit ${commit} last ${lastIndex}/${core.lastPosition.term}${matches}${config}`;
}

function describeConfig({ epoch, voters, outgoing, learners }: GroupConfig): string {
  const lists = [
    `voters ${voters.join(' ')}`,
    ...(outgoing.length > 0 ? [`outgoing ${outgoing.join(' ')}`] : []),
    ...(learners.length > 0 ? [`learners ${learners.join(' ')}`] : []),
  ];
  return `{placement ${epoch}: ${lists.join(', ')}}`;
}

function writeOf({ hardState, entries, install }: Ready): string {
  const parts = [`term ${hardState.term} vote ${hardState.vote}`];
  if (install !== undefined) parts.push(`snapshot ${install.meta.index}/${install.meta.term}`);
  if (entries.length > 0) parts.push(`entries ${entries.map(describeEntry).join(' ')}`);
  return parts.join(', ');
}

function describeEntry(entry: Entry): string {
  if (entry.kind === 'config') {
    const config = decodeConfig(entry.data);
    return `${entry.index}/${entry.term}:${config === undefined ? 'damaged' : describeConfig(config)}`;
  }
  const text = new TextDecoder().decode(entry.data);
  return `${entry.index}/${entry.term}${entry.kind === 'noop' ? ':noop' : `:${text}`}`;
}

/** One message, one line. */
function describe(m: Message): string {
  const head = `${m.from}->${m.to} ${m.type} term ${m.term}`;
  switch (m.type) {
    case 'preVote':
    case 'vote':
      return `${head} last ${m.lastIndex}/${m.lastTerm}${m.isTransfer ? ' transfer' : ''}`;
    case 'preVoteResponse':
    case 'voteResponse':
      return `${head} ${m.granted ? 'granted' : 'refused'}`;
    case 'append':
      return `${head} after ${m.prevIndex}/${m.prevTerm} [${m.entries.map(describeEntry).join(' ')}] commit ${m.commit}`;
    case 'appendResponse':
      return m.rejected
        ? `${head} rejected ${m.index}, hint ${m.hintIndex}/${m.hintTerm}`
        : `${head} has ${m.index}`;
    case 'heartbeat':
      return `${head} commit ${m.commit}${roundOf(m)}`;
    case 'snapshot':
      return `${head} up to ${m.meta.index}/${m.meta.term}`;
    case 'heartbeatResponse':
      return `${head}${roundOf(m)}`;
    case 'timeoutNow':
      return head;
  }
}

function roundOf({ readRound }: { readonly readRound?: number }): string {
  return readRound === undefined ? '' : ` question ${readRound}`;
}
