/**
 * Group time: the replicated clock of one partition. Wall clocks jump and differ between machines. A leader whose clock
 * was ahead would let windows slide early and grant too much. So time is part of the log, and this class is one
 * replica's estimate of it. It reads no clock itself.
 *
 * Rule: the anchor follows the log. A replica's estimate is `T + (monotonic now - m)`. T is a group time that the
 * leader of term k reported, m is this replica's own monotonic clock when it received T, and k is always the term of
 * the LAST ENTRY of this replica's log. A leader stamps its entries with its estimate. Of several reports the latest
 * counts, not the one with the largest estimate. Otherwise a follower whose clock runs fast would never be corrected,
 * and would release the drift of a whole term at once when it becomes leader. A leader's own stamps are not reports:
 * its timeline runs from the first entry of its term. A beat for a group that rests is a report too: its T is the time
 * of the leader's list plus what the leader's clock has gained since (see `Beat`), and never more than the leader's
 * timeline has reached.
 *
 * Claim: for any two entries of one log, stamped g1 at real time r1 and later g2 at r2, g2 - g1 <= (1 + d)(r2 - r1),
 * where no monotonic clock runs faster than real time by more than d. (Windows are widened for d, and because stamps
 * are whole milliseconds: see rules.ts. A node with a faster clock detects that and stops leading: see src/clock/.)
 *
 * Proof. Write L_k(r) for the group time of the leader of term k at real time r; it rises by at most 1 + d.
 *  1. A report can only be late: when T arrives, at real time s, T <= L_k(s). This also holds after a restart, when the
 *     last entry's own stamp is the report. So an estimate at r >= s is at most L_k(s) + (1 + d)(r - s).
 *  2. The last entry came with a report of its own, so no entry of the log was stamped after s.
 *  3. The leader of term p starts from its estimate: L_p(r) <= L_k(s) + (1 + d)(r - s), where k is the term of its
 *     last entry then. (If that entry is its own, its estimate is the line L_k itself, which satisfies the same.)
 *  4. Take two neighbouring entries. In one term: by the slope of its line. In terms k < p: by Log
 *     Matching, the leader of p began with the first of them as its last entry, and r1 <= s by 2, so
 *     g2 - g1 <= L_k(s) - L_k(r1) + (1 + d)(r2 - s) <= (1 + d)(r2 - r1). Neighbours add up to any two entries.   []
 *
 * Why a replica does not simply follow the leader of the newest term: suppose leader 2 has a slow clock, appends an
 * entry at one follower F, and dies. Leader 3, which never saw that entry, still runs on the faster timeline 1; F
 * receives one heartbeat of it. If F now anchored to leader 3 and then won term 4, it would commit the slow entry of
 * term 2 and stamp later entries from the fast timeline: windows would slide early by the difference.
 *
 * A failover loses the few milliseconds in flight, and the downtime of a whole group is not credited. Both err toward
 * denial. An application that needs to know how far it is behind UTC keeps that separately.
 */
export class GroupClock {
  readonly #monotonicMillis: () => number;
  readonly #originMillis: () => number;
  /** Undefined until the group has its first entry. */
  #anchor: { readonly timeMillis: number; readonly seenAtMillis: number } | undefined;

  /**
   * @param monotonicMillis a clock that never runs back; its origin does not matter.
   * @param originMillis where group time starts if the log is empty: the wall clock, in milliseconds since 1970.
   */
  constructor(monotonicMillis: () => number, originMillis: () => number) {
    this.#monotonicMillis = monotonicMillis;
    this.#originMillis = originMillis;
  }

  /** This replica's estimate of group time, in whole milliseconds, rounded down. */
  nowMillis(): number {
    if (this.#anchor === undefined) return Math.floor(this.#originMillis());
    const elapsed = this.#monotonicMillis() - this.#anchor.seenAtMillis;
    return Math.floor(this.#anchor.timeMillis + Math.max(0, elapsed));
  }

  /**
   * Sets the estimate: group time was at least `timeMillis`, `ageMillis` ago on this replica's clock. A later call
   * replaces an earlier one. The interface `GroupClock` passes the term too; this clock does not need it.
   */
  anchor(_term: number, timeMillis: number, ageMillis = 0): void {
    this.#anchor = { timeMillis, seenAtMillis: this.#monotonicMillis() - ageMillis };
  }
}
