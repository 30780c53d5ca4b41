/**
 * The search for the leader of one partition: whom to believe, and whom to ask next. All requests that wait for that
 * leader share it, and it goes on where it stands from one request to the next. It asks nobody itself.
 *
 * A leader is believed by its term: a term has one leader at most, and one of a newer term has taken the office from
 * all before. Who denies that it leads, or cannot be reached, is believed to lead no more, or not to be of use; the term
 * stays, so that news older than what was known is never believed again.
 *
 * The nodes that may hold the partition are asked in turn, in rounds. A round asks each of them once, and once more when
 * there is news of a newer leader that cannot be reached from here: then each is asked to pass the request on to that
 * leader. Between rounds it pauses, longer each time.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';

export interface LeaderSearchInit {
  /** Nodes that may hold the partition, likeliest first. */
  readonly candidates: () => readonly NodeId[];
  /** Can a request be sent there now, with hope of an answer? */
  readonly isReachable: (node: NodeId) => boolean;
  /** Between the first two rounds; doubles up to `pauseMillisMax`. */
  readonly pauseMillisMin: number;
  readonly pauseMillisMax: number;
}

export class LeaderSearch {
  readonly #init: LeaderSearchInit;
  #leader: NodeId = NO_NODE;
  /** Nobody said that it leads, and in which term. */
  #isGuess = false;
  /** Of the newest leader known of, also when it is not believed to lead any more. */
  #term = 0;
  /** In this round. */
  readonly #asked = new Set<NodeId>();
  /** The newest term for which nodes were asked a second time in one round. */
  #askedAgainForTerm = 0;
  /** Index of the candidate whose turn is next. */
  #turn = 0;
  #pauseMillis: number;
  #pausesUntilMillis = Number.NEGATIVE_INFINITY;

  constructor(init: LeaderSearchInit) {
    this.#init = init;
    this.#pauseMillis = init.pauseMillisMin;
  }

  /** Who is believed to lead, reachable or not. */
  get leader(): NodeId {
    return this.#leader;
  }

  /** Somebody says that `leader` leads in `term`. Returns whether that is news, and believed. */
  told(leader: NodeId, term: number): boolean {
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
      // It may have denied that it leads before it did.
      this.#asked.delete(leader);
    }
    if (term > this.#askedAgainForTerm && !this.#init.isReachable(leader)) {
      this.#askedAgainForTerm = term;
      this.#asked.clear();
    }
    return true;
  }

  /**
   * `node` had a request decided: it leads, or passed it on to who does. Whoever is told to lead in this term is
   * believed rather than it.
   */
  proved(node: NodeId): void {
    this.#leader = node;
    this.#isGuess = true;
    this.found();
  }

  /** Whoever was asked last has the request decided: the next search is a new one. */
  found(): void {
    this.#asked.clear();
    this.#pauseMillis = this.#init.pauseMillisMin;
    this.#pausesUntilMillis = Number.NEGATIVE_INFINITY;
  }

  /** `node` does not lead, or leads no more. */
  denied(node: NodeId): void {
    this.#asked.add(node);
    if (this.#leader === node) this.#leader = NO_NODE;
  }

  /** Nobody is believed to lead any more. */
  lost(): void {
    this.#leader = NO_NODE;
  }

  /** Whom to ask now. NO_NODE: nobody can be reached, or it is time to pause. */
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
