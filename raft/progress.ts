/** What a leader knows about one peer: how far its log agrees, and how much may be sent before it answers. */
import { assert } from './assert.ts';

/** So many snapshots in a row: one may be a stall. */
const REFUSALS_MAX = 2;

/**
 * - `probe`: where the logs agree is not known; one append at a time.
 * - `replicate`: known; appends are pipelined up to the in-flight window.
 * - `snapshot`: the peer needs entries that were compacted; nothing is appended until the snapshot is through.
 */
export type ProgressState = 'probe' | 'replicate' | 'snapshot';

export interface InflightLimits {
  readonly messagesMax: number;
  readonly bytesMax: number;
}

export class Progress {
  /** The last index the peer has acknowledged as on disk. Never decreases within a term. */
  match = 0;
  /** The next index to send. Invariant: match < next. */
  next: number;
  state: ProgressState = 'probe';
  /** Only who has acknowledged this index has on disk that it is a member, and may be given a vote. */
  readonly since: number;
  /** In `probe`: an append is on its way. Cleared by any answer, also by a heartbeat's. */
  probeSent = false;
  /** In `snapshot`: the index of the snapshot being sent. */
  pendingSnapshot = 0;
  /** By its last answer, the peer would not take over. */
  isReluctant = false;
  /** The leader's last question (see read-index.ts) that this peer answered in this term. */
  readRound = 0;
  /** Snapshots that it refused, one after the other. */
  #refusals = 0;
  #heardThisRound = false;
  #heardLastRound = false;
  /** Where the leader's log ended when this round of check-quorum began, and the one before. */
  #roundIndex = Number.POSITIVE_INFINITY;
  #lastRoundIndex = Number.POSITIVE_INFINITY;
  /** In `replicate`: last index and bytes of each append that is not answered yet, oldest first. */
  readonly #inflight: { lastIndex: number; bytes: number }[] = [];
  #inflightBytes = 0;
  readonly #limits: InflightLimits;

  constructor(init: { readonly next: number; readonly since: number; readonly limits: InflightLimits }) {
    assert(init.next >= 1, 'next {} is below the first index', init.next);
    this.next = init.next;
    this.since = init.since;
    this.#limits = init.limits;
  }

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

  becomeProbe(): void {
    // After a snapshot the peer has at least what the snapshot holds, even if its answer was lost.
    const next =
      this.state === 'snapshot' ? Math.max(this.match + 1, this.pendingSnapshot + 1) : this.match + 1;
    this.#reset('probe');
    this.next = next;
  }

  becomeReplicate(): void {
    this.#reset('replicate');
    this.next = this.match + 1;
  }

  becomeSnapshot(index: number): void {
    this.#reset('snapshot');
    this.pendingSnapshot = index;
  }

  /** The snapshot did not arrive: probe from what is known to match. */
  snapshotFailed(isRefused: boolean): void {
    if (isRefused) this.#refusals += 1;
    this.pendingSnapshot = 0;
    this.becomeProbe();
  }

  /** It needs a snapshot, and refuses those of this leader. */
  get isLeftBehind(): boolean {
    return this.#refusals >= REFUSALS_MAX;
  }

  /** The peer answered, or takes the benefit of the doubt. */
  heard(): void {
    this.#heardThisRound = true;
  }

  /** Has answered since this round of check-quorum began: it is there now. A round that has only begun says nobody is. */
  get heardThisRound(): boolean {
    return this.#heardThisRound;
  }

  /** Heard from for as long as check-quorum looks back, in whatever moment one asks: it is not taken for gone. */
  get isReachable(): boolean {
    return this.#heardThisRound || this.#heardLastRound;
  }

  /** It could lead, and would. */
  get mayTakeOver(): boolean {
    return this.isReachable && !this.isReluctant && this.state !== 'snapshot';
  }

  /** A round of check-quorum ends and the next begins, with a log up to `lastIndex`. Returns whether it heard from the peer. */
  nextRound(lastIndex: number): boolean {
    this.#heardLastRound = this.#heardThisRound;
    this.#heardThisRound = false;
    this.#lastRoundIndex = this.#roundIndex;
    this.#roundIndex = lastIndex;
    return this.#heardLastRound;
  }

  /** Holds everything that the log held when the last round began: it keeps pace, however much that is in entries. */
  get keepsPace(): boolean {
    return this.match >= this.#lastRoundIndex;
  }

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

  /** Records an append of `count` entries that just left. */
  sent(count: number, bytes: number): void {
    if (this.state === 'probe') {
      this.probeSent = count > 0;
      return;
    }
    assert(this.state === 'replicate', 'nothing is appended while a snapshot is on its way');
    if (count === 0) return;
    this.next += count;
    this.#inflight.push({ lastIndex: this.next - 1, bytes });
    this.#inflightBytes += bytes;
  }

  /** The peer has everything up to `index`. Returns false if that was known: an old or repeated answer. */
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
   * The peer refused an append after `rejected`; it may agree at `hint`. Returns false for an answer that is too
   * old to mean anything: moving `next` to or below `match` would lose what the peer acknowledged.
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

  /** Frees the window of every append up to `index`. */
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

  /** A heartbeat was answered, so the peer is reachable: let one more append go, in case the last was lost. */
  freeOneInflight(): void {
    const oldest = this.#inflight[0];
    if (oldest !== undefined && this.isPaused()) this.freeInflight(oldest.lastIndex);
  }
}
