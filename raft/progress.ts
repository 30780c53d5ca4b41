/**
 * What a leader knows about one peer: up to where the logs agree, and how much it may send before the peer answers.
 */
import { assert } from './assert.ts';

/** A peer that refused this many snapshots in a row is left behind. One refusal may be a stall. */
const REFUSALS_MAX = 2;

/**
 * How a leader sends to a peer:
 *
 * - `probe`: it does not know where the logs agree, and sends one append at a time.
 * - `replicate`: it knows, and sends appends ahead of the answers, up to the in-flight window.
 * - `snapshot`: the peer needs compacted entries. No appends until the snapshot has arrived.
 */
export type ProgressState = 'probe' | 'replicate' | 'snapshot';

/** The in-flight window: unacknowledged appends per peer. The append that reaches `bytesMax` is the last. */
export interface InflightLimits {
  readonly messagesMax: number;
  readonly bytesMax: number;
}

/** The progress of one peer in one term. Roughly etcd's `tracker.Progress`. */
export class Progress {
  /** The last index the peer has acknowledged as on disk. Never decreases within a term. */
  match = 0;
  /** The next index to send. Invariant: match < next. */
  next: number;
  state: ProgressState = 'probe';
  /** A peer that has acknowledged this index has on disk that it is a member. Only then may it get a vote. */
  readonly since: number;
  /** In `probe`: an append is on its way. Cleared by any answer, including one to a heartbeat. */
  probeSent = false;
  /** In `snapshot`: the index of the snapshot being sent. */
  pendingSnapshot = 0;
  /** The peer's last answer said that it would not take over. */
  isReluctant = false;
  /** The last leadership check (read-index.ts) that this peer answered in this term. */
  readRound = 0;
  /** Snapshots that the peer refused in a row. */
  #refusals = 0;
  #heardThisRound = false;
  #heardLastRound = false;
  /** The last index of the leader's log when this round of check-quorum began, and when the previous one did. */
  #roundIndex = Number.POSITIVE_INFINITY;
  #lastRoundIndex = Number.POSITIVE_INFINITY;
  /** In `replicate`: the last index and the bytes of each unanswered append, oldest first. */
  readonly #inflight: { lastIndex: number; bytes: number }[] = [];
  #inflightBytes = 0;
  readonly #limits: InflightLimits;

  constructor(init: { readonly next: number; readonly since: number; readonly limits: InflightLimits }) {
    assert(init.next >= 1, 'next {} is below the first index', init.next);
    this.next = init.next;
    this.since = init.since;
    this.#limits = init.limits;
  }

  /** The number of unanswered appends. */
  get inflightCount(): number {
    return this.#inflight.length;
  }

  #reset(state: ProgressState): void {
    this.state = state;
    this.probeSent = false;
    this.pendingSnapshot = 0;
    this.#inflight.length = 0;
    this.#inflightBytes = 0;
  }

  /** Starts to search where the logs agree. */
  becomeProbe(): void {
    // After a snapshot the peer has at least what it contains, even if its answer was lost.
    const next =
      this.state === 'snapshot' ? Math.max(this.match + 1, this.pendingSnapshot + 1) : this.match + 1;
    this.#reset('probe');
    this.next = next;
  }

  /** The logs agree up to `match`: send ahead. */
  becomeReplicate(): void {
    this.#reset('replicate');
    this.next = this.match + 1;
  }

  /** A snapshot that ends at `index` is being sent. */
  becomeSnapshot(index: number): void {
    this.#reset('snapshot');
    this.pendingSnapshot = index;
  }

  /** The snapshot did not arrive. `isRefused` means that the peer was reachable and did not install it. */
  snapshotFailed(isRefused: boolean): void {
    if (isRefused) this.#refusals += 1;
    this.pendingSnapshot = 0;
    this.becomeProbe();
  }

  /** The peer needs a snapshot and refuses those of this leader. */
  get isLeftBehind(): boolean {
    return this.#refusals >= REFUSALS_MAX;
  }

  /** The peer answered. Also called for a member that was just added, which counts as reachable for a while. */
  heard(): void {
    this.#heardThisRound = true;
  }

  /**
   * The peer has answered since this round of check-quorum began. At the start of a round this is false for every
   * peer.
   */
  get heardThisRound(): boolean {
    return this.#heardThisRound;
  }

  /** The peer has answered in this round of check-quorum or the previous one. */
  get isReachable(): boolean {
    return this.#heardThisRound || this.#heardLastRound;
  }

  /** The peer is able and willing to lead. */
  get mayTakeOver(): boolean {
    return this.isReachable && !this.isReluctant && this.state !== 'snapshot';
  }

  /**
   * Ends a round of check-quorum and begins the next. Returns whether the peer answered in the round that ended.
   *
   * @param lastIndex the end of the leader's log now.
   */
  nextRound(lastIndex: number): boolean {
    this.#heardLastRound = this.#heardThisRound;
    this.#heardThisRound = false;
    this.#lastRoundIndex = this.#roundIndex;
    this.#roundIndex = lastIndex;
    return this.#heardLastRound;
  }

  /**
   * The peer has everything that was in the leader's log when the previous round began, so it keeps pace however
   * fast the log grows.
   */
  get keepsPace(): boolean {
    return this.match >= this.#lastRoundIndex;
  }

  /** Whether nothing may be sent to the peer before it answers. */
  isPaused(): boolean {
    switch (this.state) {
      case 'probe':
        return this.probeSent;
      case 'replicate':
        return (
          this.#inflight.length >= this.#limits.messagesMax || this.#inflightBytes >= this.#limits.bytesMax
        );
      case 'snapshot':
        return true;
    }
  }

  /** Records that an append with `count` entries and `bytes` bytes was sent. */
  sent(count: number, bytes: number): void {
    if (this.state === 'probe') {
      this.probeSent = count > 0;
      return;
    }
    assert(this.state === 'replicate', 'nothing may be appended while a snapshot is being sent');
    if (count === 0) return;
    this.next += count;
    this.#inflight.push({ lastIndex: this.next - 1, bytes });
    this.#inflightBytes += bytes;
  }

  /** The peer acknowledged everything up to `index`. Returns false for an old or repeated answer. */
  maybeUpdate(index: number): boolean {
    const isNew = index > this.match;
    if (isNew) {
      this.match = index;
      this.probeSent = false;
      this.#refusals = 0;
    }
    this.next = Math.max(this.next, index + 1);
    assert(this.match < this.next, 'match {} reached next {}', this.match, this.next);
    return isNew;
  }

  /**
   * The peer rejected an append whose `prevIndex` was `rejected`; the logs may agree at `hint`. Returns false for
   * an outdated answer: moving `next` to `match` or below would lose what the peer acknowledged.
   */
  maybeDecreaseTo(rejected: number, hint: number): boolean {
    if (this.state === 'replicate') {
      if (rejected <= this.match) return false;
      this.next = this.match + 1;
      return true;
    }
    if (this.state === 'snapshot' || this.next - 1 !== rejected) return false;
    this.next = Math.max(Math.min(rejected, hint + 1), this.match + 1);
    this.probeSent = false;
    return true;
  }

  /** Frees the part of the window that appends up to `index` took. */
  freeInflight(index: number): void {
    let count = 0;
    while (count < this.#inflight.length) {
      const oldest = this.#inflight[count];
      if (oldest === undefined || oldest.lastIndex > index) break;
      this.#inflightBytes -= oldest.bytes;
      count += 1;
    }
    this.#inflight.splice(0, count);
  }

  /**
   * The peer answered a heartbeat. If the window is full, free the oldest append, in case all of them were lost.
   */
  freeOneInflight(): void {
    const oldest = this.#inflight[0];
    if (oldest !== undefined && this.isPaused()) this.freeInflight(oldest.lastIndex);
  }
}
