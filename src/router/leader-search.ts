/**
 * Searches the leader of one partition: which node is considered the leader, and which to ask next. One search
 * serves all requests that wait for the leader, and it continues from one request to the next.
 *
 * A claim about a leader counts by its term. A term has at most one leader, and a leader of a newer term replaces
 * all older ones. A node that denies that it leads, or cannot be reached, is not considered the leader any more;
 * the term is kept, so that older claims are never accepted again.
 *
 * The nodes that may hold the partition are asked one after the other, in rounds. A round asks each node once, and
 * a second time if a newer leader becomes known that cannot be reached from here: then each is asked to relay the
 * request to that leader. Between rounds there is a pause, longer each time.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';

/** What `LeaderSearch` needs. */
export interface LeaderSearchInit {
  /** Nodes that may hold the partition, most likely leader first. */
  readonly candidates: () => readonly NodeId[];
  /** A request can be sent to the node now and is likely to be answered. */
  readonly isReachable: (node: NodeId) => boolean;
  /** Pause after the first round; doubles up to `pauseMillisMax`. */
  readonly pauseMillisMin: number;
  readonly pauseMillisMax: number;
}

/** The search for the leader of one partition. */
export class LeaderSearch {
  readonly #init: LeaderSearchInit;
  #leader: NodeId = NO_NODE;
  /** The leader is a guess: it decided a request, but nobody said that it leads in a term. */
  #isGuess = false;
  /** Term of the newest leader known, even if it is not considered the leader any more. */
  #term = 0;
  /** Nodes asked in this round. */
  readonly #asked = new Set<NodeId>();
  /** The newest term for which nodes were asked a second time in one round. */
  #askedAgainForTerm = 0;
  /** Index of the next candidate. */
  #turn = 0;
  #pauseMillis: number;
  #pausesUntilMillis = Number.NEGATIVE_INFINITY;

  constructor(init: LeaderSearchInit) {
    this.#init = init;
    this.#pauseMillis = init.pauseMillisMin;
  }

  /** The node considered the leader, reachable or not; NO_NODE: none. */
  get leader(): NodeId {
    return this.#leader;
  }

  /** Takes the claim that `leader` leads in `term`. Returns whether it is new and accepted. */
  reported(leader: NodeId, term: number): boolean {
    const isNewer = term > this.#term;
    const isKnown = this.#leader !== NO_NODE && !this.#isGuess;
    if (leader === NO_NODE || (!isNewer && (term < this.#term || isKnown))) return false;
    if (!isNewer && leader === this.#leader) {
      this.#isGuess = false;
      return false;
    }
    this.#leader = leader;
    this.#isGuess = false;
    this.#term = term;
    if (isNewer) {
      this.#pauseMillis = this.#init.pauseMillisMin;
      // It may have denied that it leads before it was elected.
      this.#asked.delete(leader);
    }
    if (term > this.#askedAgainForTerm && !this.#init.isReachable(leader)) {
      this.#askedAgainForTerm = term;
      this.#asked.clear();
    }
    return true;
  }

  /**
   * `node` had a request decided, itself or by relaying it. So it is guessed to be the leader, until somebody names
   * the leader of this term.
   */
  proved(node: NodeId): void {
    this.#leader = node;
    this.#isGuess = true;
    this.found();
  }

  /** The node asked last had the request decided, so the next search starts afresh. */
  found(): void {
    this.#asked.clear();
    this.#pauseMillis = this.#init.pauseMillisMin;
    this.#pausesUntilMillis = Number.NEGATIVE_INFINITY;
  }

  /** `node` does not lead, or not any more. */
  denied(node: NodeId): void {
    this.#asked.add(node);
    if (this.#leader === node) this.#leader = NO_NODE;
  }

  /** No node is considered the leader any more. */
  lost(): void {
    this.#leader = NO_NODE;
  }

  /** The node to ask now. NO_NODE: none can be reached, or there is a pause. */
  next(nowMillis: number): NodeId {
    if (nowMillis < this.#pausesUntilMillis) return NO_NODE;
    const { candidates, isReachable, pauseMillisMax } = this.#init;
    const leader = this.#leader;
    let isAlone = leader === NO_NODE || !isReachable(leader);
    if (!isAlone && !this.#asked.has(leader)) return this.#ask(leader);
    const nodes = candidates();
    for (let i = 0; i < nodes.length; i += 1) {
      const turn = (this.#turn + i) % nodes.length;
      const node = nodes[turn] ?? NO_NODE;
      if (node === leader || !isReachable(node)) continue;
      isAlone = false;
      if (this.#asked.has(node)) continue;
      this.#turn = turn + 1;
      return this.#ask(node);
    }
    if (isAlone) return NO_NODE;
    this.#asked.clear();
    this.#pausesUntilMillis = nowMillis + this.#pauseMillis;
    this.#pauseMillis = Math.min(2 * this.#pauseMillis, pauseMillisMax);
    return NO_NODE;
  }

  #ask(node: NodeId): NodeId {
    this.#asked.add(node);
    return node;
  }
}
