/**
 * The invariants that must hold at every moment, under any fault of machines, disks and links. Each check names the
 * property of the Raft paper (figure 3) or the guarantee of this project that it stands for.
 */
import { assert } from '../../raft/assert.ts';
import type { RaftCore } from '../../raft/core.ts';
import { quorumIndex } from '../../raft/quorum.ts';
import type { Entry, HardState, LogPosition, Message, NodeId, StoredGroup } from '../../raft/types.ts';
import { positionsOf } from './log-view.ts';

/** One replica, and the state that a crash now would leave on its disk. */
export interface ObservedNode {
  readonly id: NodeId;
  readonly core: RaftCore;
  readonly stored: StoredGroup | undefined;
  /** Its state machine: the last index applied, and a digest of the state. */
  readonly machine: { readonly index: number; readonly digest: number };
}

export interface ObservedNetwork {
  /** Real time in milliseconds. */
  readonly now: number;
  /** The voters, if they never change; otherwise durability is not checked. */
  readonly voters: readonly ObservedNode[] | undefined;
}

/** The state of a core at the last check. */
interface Seen {
  readonly core: RaftCore;
  readonly base: LogPosition;
  /** Positions from base.index + 1 on. */
  readonly positions: readonly LogPosition[];
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
}

interface Committed {
  readonly term: number;
  /** The term of the first node that knew of the commit: the leader that committed it. */
  readonly inTerm: number;
}

export class Invariants {
  readonly #network: ObservedNetwork;
  readonly #seen = new Map<NodeId, Seen>();
  readonly #leaderOfTerm = new Map<number, NodeId>();
  readonly #voteOf = new Map<string, NodeId>();
  /** The committed entries by index; they stay committed forever. */
  readonly #committed: (Committed | undefined)[] = [];
  readonly #digestAt: number[] = [];
  /** When entries came into being, in real time, by term and index. */
  readonly #born = new Map<string, number>();
  readonly #hardState = new Map<NodeId, HardState | undefined>();
  /** Largest lead of group time over real time between two entries of one log, in milliseconds. */
  leadMillisMax = 0;
  /** How far group time may run ahead of real time between two entries: stamps are whole milliseconds. */
  leadMillisAllowed = 1;

  constructor(network: ObservedNetwork) {
    this.#network = network;
  }

  get committedIndex(): number {
    return Math.max(0, this.#committed.length - 1);
  }

  started(node: ObservedNode): void {
    this.#seen.delete(node.id);
    this.#hardState.set(node.id, node.stored?.hardState);
    this.observe(node);
  }

  /** Checks a node that may have changed. */
  observe(node: ObservedNode): void {
    const { core } = node;
    const status = core.status();
    const before = this.#seen.get(node.id);
    if (before !== undefined) {
      assert(status.term >= before.term, `term of ${node.id} fell from ${before.term} to ${status.term}`);
      assert(status.commit >= before.commit, `commit of ${node.id} fell to ${status.commit}`);
      assert(status.applied >= before.applied, `applied of ${node.id} fell to ${status.applied}`);
    }
    const isSame =
      before !== undefined &&
      before.positions.at(-1) === (core.lastPosition === core.logBase ? undefined : core.lastPosition) &&
      before.base === core.logBase;
    const positions = isSame ? before.positions : positionsOf(core);
    const { term, commit, applied } = status;
    const seen: Seen = { core, base: core.logBase, positions, term, commit, applied };
    this.#seen.set(node.id, seen);
    if (status.role === 'leader') this.#checkLeader(node.id, seen);
    if (!isSame) {
      this.#checkLogMatching(node.id, seen);
      this.#checkClock(node.id, seen);
    }
    if (commit > (before?.commit ?? 0) || !isSame) this.#checkCommitted(node.id, seen);
  }

  #checkLeader(id: NodeId, seen: Seen): void {
    const { term, positions } = seen;
    const isNew = !this.#leaderOfTerm.has(term);
    const leader = this.#leaderOfTerm.get(term) ?? id;
    assert(leader === id, `election safety: ${leader} and ${id} both lead term ${term}`);
    this.#leaderOfTerm.set(term, id);
    if (isNew) this.#checkCompleteness(id, seen);
    // An entry of the leader's own term that is new to the invariants was created just now.
    for (let i = positions.length - 1; i >= 0; i -= 1) {
      const position = positions[i];
      if (position === undefined || position.term !== term) break;
      const key = `${term}:${position.index}`;
      if (this.#born.has(key)) break;
      this.#born.set(key, this.#network.now);
    }
  }

  #checkCompleteness(id: NodeId, seen: Seen): void {
    for (let index = this.committedIndex; index > seen.base.index; index -= 1) {
      const committed = this.#committed[index];
      if (committed === undefined || committed.inTerm >= seen.term) continue;
      const own = at(seen, index)?.term;
      assert(
        own === committed.term,
        `leader completeness: leader ${id} of term ${seen.term} has term ${own} at ${index}, ` +
          `where term ${committed.term} was committed`,
      );
    }
  }

  #checkLogMatching(id: NodeId, seen: Seen): void {
    for (const [otherId, other] of this.#seen) {
      if (otherId === id) continue;
      let agree = false;
      const low = Math.max(seen.base.index, other.base.index);
      for (let i = Math.min(last(seen), last(other)); i >= low; i -= 1) {
        const a = at(seen, i);
        const b = at(other, i);
        if (a?.term === b?.term) agree = true;
        assert(
          !agree || (a?.term === b?.term && a?.timeMillis === b?.timeMillis),
          `log matching: ${id} has term ${a?.term} at ${i} and ${otherId} has term ${b?.term}, yet they agree later`,
        );
      }
    }
  }

  /** The group clock: between any two entries of one log, group time elapsed <= real time elapsed. */
  #checkClock(id: NodeId, seen: Seen): void {
    // The smallest lead of any entry so far: group time minus real time, up to a constant.
    let smallest = Number.POSITIVE_INFINITY;
    for (const { term, index, timeMillis } of seen.positions) {
      const born = this.#born.get(`${term}:${index}`);
      if (born === undefined) continue;
      const lead = timeMillis - born;
      const ahead = lead - smallest;
      this.leadMillisMax = Math.max(this.leadMillisMax, ahead);
      assert(
        ahead <= this.leadMillisAllowed,
        `group clock: at ${index} of node ${id} (term ${term}) group time is ${ahead} ms ahead of real time`,
      );
      smallest = Math.min(smallest, lead);
    }
  }

  #checkCommitted(id: NodeId, seen: Seen): void {
    const known = this.committedIndex;
    for (let index = seen.base.index + 1; index <= seen.commit; index += 1) {
      const term = at(seen, index)?.term;
      assert(term !== undefined, `node ${id} committed ${index} without having it`);
      const committed = this.#committed[index];
      if (committed === undefined) this.#committed[index] = { term, inTerm: seen.term };
      else {
        assert(
          committed.term === term,
          `state-machine safety: ${id} committed term ${term} at ${index}, where term ${committed.term} was`,
        );
      }
    }
    if (this.committedIndex > known) this.#checkDurable();
  }

  /** Committed entries are on the disks of a quorum, and stay there. */
  #checkDurable(): void {
    const { voters } = this.#network;
    if (voters === undefined) return;
    const reached = voters.map((node) => this.#durableUpTo(node.stored));
    assert(
      quorumIndex(reached) >= this.committedIndex,
      `durability: ${this.committedIndex} is committed, and the disks hold ${reached.join(', ')}`,
    );
  }

  /** The number of committed entries that a disk holds. */
  #durableUpTo(stored: StoredGroup | undefined): number {
    if (stored === undefined) return 0;
    const { base, entries } = stored;
    let index = Math.min(this.committedIndex, base.index + entries.length);
    while (index > base.index) {
      const entry = entries[index - base.index - 1];
      if (entry?.term === this.#committed[index]?.term) break;
      index -= 1;
    }
    return Math.max(index, base.index);
  }

  diskChanged(node: ObservedNode): void {
    const before = this.#hardState.get(node.id);
    const { stored } = node;
    this.#hardState.set(node.id, stored?.hardState);
    if (stored !== undefined && before !== undefined) {
      const { term, vote } = stored.hardState;
      assert(term >= before.term, `term on the disk of ${node.id} fell from ${before.term} to ${term}`);
      assert(
        term > before.term || before.vote === 0 || before.vote === vote,
        `vote of ${node.id} in term ${term} changed from ${before.vote} to ${vote}`,
      );
    }
    if (this.committedIndex > 0) this.#checkDurable();
  }

  /** Before a message leaves: checks that everything it promises is on disk. */
  sending(node: ObservedNode, message: Message): void {
    const disk = node.stored;
    const { id } = node;
    switch (message.type) {
      case 'voteResponse': {
        if (!message.granted) return;
        this.#checkVote(id, message.term, message.to);
        assert(
          disk !== undefined && disk.hardState.term >= message.term,
          `${id} grants a vote in term ${message.term} that is not on disk`,
        );
        if (disk.hardState.term === message.term) {
          assert(disk.hardState.vote === message.to, `the vote of ${id} for ${message.to} is not on disk`);
        }
        return;
      }
      case 'vote': {
        this.#checkVote(id, message.term, id);
        assert(
          disk !== undefined && disk.hardState.term >= message.term,
          `${id} asks for votes in term ${message.term}, which is not on disk`,
        );
        // A candidate that lost meanwhile counts no votes any more, so its log does not matter.
        if (node.core.role === 'candidate' && node.core.term === message.term) {
          assert(
            holds(disk, message.lastIndex, message.lastTerm),
            `${id} advertises entry ${message.lastIndex}, which is not on disk`,
          );
        }
        return;
      }
      case 'appendResponse':
        assert(
          disk !== undefined && disk.hardState.term >= message.term,
          `${id} answers in term ${message.term}, which is not on disk`,
        );
        // In a later term the entries may be gone again: such an answer is merely late.
        if (!message.rejected && disk.hardState.term === message.term) {
          const lastStored = disk.base.index + disk.entries.length;
          assert(
            message.index <= lastStored,
            `${id} acknowledges ${message.index} and has ${lastStored} on disk`,
          );
        }
        return;
      case 'heartbeat': {
        const match = node.core.status().match.get(message.to);
        // This is the last message to a node that was removed: the leader no longer tracks it.
        if (match === undefined) return;
        assert(message.commit <= match, `a heartbeat commits ${message.commit}, past match ${match}`);
        return;
      }
      case 'append':
        assert(
          message.entries.length === 0 || message.entries[0]?.index === message.prevIndex + 1,
          'an append has no gap after prevIndex',
        );
        return;
      case 'preVote':
      case 'preVoteResponse':
      case 'heartbeatResponse':
      case 'snapshot':
      case 'timeoutNow':
        return;
    }
  }

  /** One vote per term; a candidate votes for itself. */
  #checkVote(id: NodeId, term: number, candidate: NodeId): void {
    const key = `${id}:${term}`;
    const voted = this.#voteOf.get(key) ?? candidate;
    assert(voted === candidate, `${id} votes for ${voted} and ${candidate} in term ${term}`);
    this.#voteOf.set(key, voted);
  }

  applied(node: ObservedNode, entry: Entry): void {
    const committed = this.#committed[entry.index];
    assert(committed?.term === entry.term, `${node.id} applies ${entry.index}, which is not committed`);
    const { stored } = node;
    assert(
      stored !== undefined && holds(stored, entry.index, entry.term),
      `${node.id} applies ${entry.index}, which is not on its disk`,
    );
    this.#checkDigest(node);
  }

  restored(node: ObservedNode): void {
    this.#checkDigest(node);
  }

  #checkDigest(node: ObservedNode): void {
    const { index, digest } = node.machine;
    const known = this.#digestAt[index] ?? digest;
    assert(known === digest, `state-machine safety: the state of ${node.id} differs at ${index}`);
    this.#digestAt[index] = digest;
  }
}

function last(seen: Seen): number {
  return seen.base.index + seen.positions.length;
}

function at(seen: Seen, index: number): LogPosition | undefined {
  return index === seen.base.index ? seen.base : seen.positions[index - seen.base.index - 1];
}

function holds(stored: StoredGroup, index: number, term: number): boolean {
  if (index === 0 || index < stored.base.index) return true;
  if (index === stored.base.index) return stored.base.term === term;
  return stored.entries[index - stored.base.index - 1]?.term === term;
}
