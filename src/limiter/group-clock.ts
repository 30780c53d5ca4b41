/**
 * Group time: the replicated clock of one partition. Wall clocks jump and differ between machines; a leader whose
 * clock was ahead would let windows slide early and grant too much. So time is part of the log, and this class is
 * one replica's estimate of it. It reads no clock itself.
 *
 * Rule: the anchor follows the log. A replica's estimate is `T + (monotonic now - m)`, where T is a group time
 * that the leader of term k showed, m is this replica's own monotonic clock when it saw that, and k is always the
 * term of the LAST ENTRY of this replica's log. A leader stamps its entries with its estimate.
 *
 * Claim: for any two entries of one log, group time elapsed <= real time elapsed. (Rates of monotonic clocks may
 * differ by a few ppm; windows are widened for that, and for stamps being whole milliseconds: see rules.ts.)
 *
 * Proof. Write L_k(r) for the group time of the leader of term k at real time r; it is a line of slope one.
 *  1. An estimate anchored to term k is never ahead of L_k: T was shown at or before the moment it was seen.
 *     This also holds after a restart, when the anchor is the last entry's own stamp and "seen" means "read back".
 *  2. When the leader of term p takes office, its last entry is of some term k, so its estimate is anchored to k,
 *     and it starts there: L_p <= L_k everywhere.
 *  3. Take a log with terms t1 < t2 < ... By Log Matching, the leader of each term began with exactly the entries
 *     before its own, so its last entry then was of the term before it in this log: L_t1 >= L_t2 >= ...
 *  4. For entries stamped g1 in term i at real time r1 and later g2 in term j at r2:
 *     g2 - g1 = L_j(r2) - L_i(r1) <= L_i(r2) - L_i(r1) = r2 - r1.                                              []
 *
 * Why not simply believe the leader of the newest term that was heard: suppose leader 2 is slow, appends an entry
 * at one follower F, and dies. Leader 3, which never saw that entry, still runs on the faster timeline 1; F hears
 * one heartbeat of it. If F now anchored to leader 3 and then won term 4, it would commit the slow entry of
 * term 2 and stamp what follows from the fast timeline: windows would slide early by the difference.
 *
 * A failover costs the few milliseconds in flight, and downtime of a whole group is not credited. Both err
 * toward denial.
 */
export class GroupClock {
  readonly #monotonicMillis: () => number;
  readonly #originMillis: () => number;
  /** undefined until the group has its first entry. */
  #anchor: { readonly term: number; readonly timeMillis: number; readonly seenAtMillis: number } | undefined;

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
    const estimate = this.#estimate();
    return Math.floor(estimate ?? this.#originMillis());
  }

  #estimate(): number | undefined {
    if (this.#anchor === undefined) return undefined;
    const elapsed = this.#monotonicMillis() - this.#anchor.seenAtMillis;
    return this.#anchor.timeMillis + Math.max(0, elapsed);
  }

  /**
   * The timeline of `term`, which is the term of the log's last entry, has reached at least `timeMillis`.
   * Within one term the larger estimate wins: both are on the same line, and one is merely late.
   */
  anchor(term: number, timeMillis: number): void {
    if (this.#anchor?.term === term) {
      const estimate = this.#estimate();
      if (estimate !== undefined && estimate >= timeMillis) return;
    }
    this.#anchor = { term, timeMillis, seenAtMillis: this.#monotonicMillis() };
  }
}
