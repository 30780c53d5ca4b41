/**
 * That a part of the history is missing: what was granted after a backup, or by replicas that are gone for good. Until a
 * full window has passed nobody knows who spent how much, so everybody counts as saturated, known or not. It changes no
 * recorded grant, and reads no clock.
 *
 * Argument. Let the group run again at real time r, where its time is G. Whatever is missing was granted before r: the
 * cluster it happened in does not run any more. Group time never outruns real time but for the drift that windows are
 * widened by (raft/driver/group-clock.ts). So a grant stamped G + reach or later is made when everything that is missing
 * has left its window, in real time, whatever its stamp was: where group time is put makes no difference. G is that of
 * the entry in which the first leader says that the group runs; until then nothing is granted at all.
 *
 * A caller's timestamp says nothing of real time. So a request that brings one waits as long, and besides its timestamp
 * has to be a window later than any that was admitted before: those were at most `MAX_AHEAD_MILLIS_DEFAULT` ahead of their
 * leader's wall clock or group time, and that clock at most `LATE_MILLIS` ahead of the one that the first leader reads now.
 * Timestamps of a far epoch can be compared with nothing: they wait as long as such a key is remembered.
 *
 * A request id of before may have been refunded since, and what it freed granted to others. So none is remembered.
 */
import { MAX_AHEAD_MILLIS_DEFAULT } from '../rules.ts';

/** How late a caller's timestamp may be and still be decided at its own time, whatever was forgotten. */
export const LATE_MILLIS = 60_000;

/** How long the grants of a far epoch are kept after the last one, in group time. */
export const FAR_EPOCH_HORIZON_MILLIS = 86_400_000;

/** A request, as far as it matters here. Times in milliseconds. */
interface HeldBack {
  /** The time it asks for: group time, or a timestamp of its caller. */
  readonly asked: number;
  readonly isEvent: boolean;
}

/** As snapshots hold it: 0 where there is none. */
export interface LostHistoryFields {
  readonly throughIndex: number;
  readonly sinceMillis: number;
  readonly stampsMillis: number;
}

export class LostHistory {
  /** The entry that says so; 0: nothing is missing. What was granted up to there is known under no request id. */
  throughIndex = 0;
  /** Group time when the group ran again; 0 until a leader has said it. */
  sinceMillis = 0;
  /** No timestamp of a caller that was admitted before is later. */
  stampsMillis = 0;

  /** A leader has to say that the group runs again: until then nothing is granted. */
  get isOpen(): boolean {
    return this.throughIndex > 0 && this.sinceMillis === 0;
  }

  /** Entry `index` says that something is missing from before it. */
  begin(index: number): void {
    this.throughIndex = index;
    this.sinceMillis = 0;
    this.stampsMillis = 0;
  }

  /** The group runs again, at this group time and by the wall clock of its leader. Only the first to say so counts. */
  end(groupMillis: number, wallMillis: number): void {
    if (!this.isOpen) return;
    // No group begins at 0: it would look like none.
    this.sinceMillis = Math.max(1, groupMillis);
    this.stampsMillis = Math.max(groupMillis, wallMillis) + MAX_AHEAD_MILLIS_DEFAULT + LATE_MILLIS;
  }

  /**
   * The earliest time, in the one that is asked for, at which such a request may be granted something; not above `asked`
   * if it may be now.
   *
   * @param now group time
   * @param reachMillis how long a grant of its rule counts at most
   * @param isFar its timestamp is of a far epoch
   */
  throughMillis({ asked, isEvent }: HeldBack, now: number, reachMillis: number, isFar: boolean): number {
    if (this.throughIndex === 0) return 0;
    const heldMillis = isFar ? Math.max(FAR_EPOCH_HORIZON_MILLIS, reachMillis) : reachMillis;
    const leftMillis = this.isOpen ? heldMillis : Math.max(0, this.sinceMillis + heldMillis - now);
    if (!isEvent || isFar) return asked + leftMillis;
    return Math.max(asked + leftMillis, this.stampsMillis + reachMillis);
  }

  get fields(): LostHistoryFields {
    const { throughIndex, sinceMillis, stampsMillis } = this;
    return { throughIndex, sinceMillis, stampsMillis };
  }
}
