/**
 * Handles a missing part of the history: grants made after a backup, or by replicas that are gone for good. Until a
 * full window has passed, nobody knows how much each key has spent, so every key counts as full, known or not.
 * Recorded grants do not change, and no clock is read.
 *
 * Why this is enough: let the group run again at real time r, with group time G. Everything missing was granted before
 * r, because the old cluster does not run any more. Group time never outruns real time, except for the drift that
 * windows are widened by (raft/driver/group-clock.ts). So a grant stamped G + reach or later is made when everything
 * missing has left its window in real time, regardless of its timestamps. G is the group time of the entry in which the
 * first leader says that the group runs again; until then nothing is granted.
 *
 * A caller's timestamp says nothing about real time. So a request with a timestamp waits just as long. In addition, its
 * timestamp must be a window later than any that was admitted before. Those were at most `MAX_AHEAD_MILLIS_DEFAULT`
 * ahead of their leader's wall clock or group time, and that clock at most `LATE_MILLIS` ahead of the clock that the
 * first leader reads now. A timestamp of a far epoch (more than 31 days older than the group, see key-table.ts) cannot
 * be compared with any of these clocks: its request waits as long as such a key is remembered
 * (`FAR_EPOCH_HORIZON_MILLIS`).
 *
 * A request id from before may have been refunded since, and the refunded cost granted to others. So no such id is
 * remembered.
 */
import { MAX_AHEAD_MILLIS_DEFAULT } from '../rules.ts';

/** How late a caller's timestamp may be and still be decided at its own time, even after keys were forgotten. */
export const LATE_MILLIS = 60_000;

/** How long grants of a far epoch are kept after the last one, in group time. */
export const FAR_EPOCH_HORIZON_MILLIS = 86_400_000;

/** The fields of a request that matter here. Times are in milliseconds. */
interface HeldBack {
  /** The time it asks for: group time, or its caller's timestamp. */
  readonly asked: number;
  readonly isEvent: boolean;
}

/** As snapshots store it: 0 means none. */
export interface LostHistoryFields {
  readonly throughIndex: number;
  readonly sinceMillis: number;
  readonly stampsMillis: number;
}

/** The knowledge of a group about its missing history. */
export class LostHistory {
  /** The entry that reported the loss; 0 if nothing is missing. No request id of a grant up to this entry is known. */
  throughIndex = 0;
  /** Group time when the group ran again; 0 until a leader has said so. */
  sinceMillis = 0;
  /** No caller's timestamp that was admitted before is later than this. */
  stampsMillis = 0;

  /** No leader has said yet that the group runs again. Nothing is granted until then. */
  get isOpen(): boolean {
    return this.throughIndex > 0 && this.sinceMillis === 0;
  }

  /** Entry `index` reports that history before it is missing. */
  begin(index: number): void {
    this.throughIndex = index;
    this.sinceMillis = 0;
    this.stampsMillis = 0;
  }

  /** The group runs again, at this group time and by its leader's wall clock. Only the first such entry counts. */
  end(groupMillis: number, wallMillis: number): void {
    if (!this.isOpen) return;
    // 0 would mean that it does not run yet.
    this.sinceMillis = Math.max(1, groupMillis);
    this.stampsMillis = Math.max(groupMillis, wallMillis) + MAX_AHEAD_MILLIS_DEFAULT + LATE_MILLIS;
  }

  /**
   * The earliest time, on the scale of `asked`, at which the request may be granted; not above `asked` if it may be
   * granted now.
   *
   * @param now group time
   * @param reachMillis how long a grant of its rule counts at most
   * @param isFar its timestamp belongs to a far epoch
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
