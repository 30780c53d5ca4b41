/** Whether a node should lead its groups, and what keeps it from that. Pure; the driver tells its cores. */

/**
 * - `willing`: leads whatever it is elected for.
 * - `reluctant`: takes over from no leader that works, hands over what it leads, and leads what nobody else does: a group
 *   without a leader could not even change its members.
 * - `unfit`: neither leads nor campaigns. It hands over, and what nobody takes within an election timeout it gives up.
 */
export type Willingness = 'willing' | 'reluctant' | 'unfit';

/**
 * - `lowDisk`: the disk has less room than the floor: no new requests are taken. The one name of this state, everywhere.
 * - `stopping`: the process is about to end.
 * - `draining`: an operator wants others to lead, until further notice.
 * - `rulesUnknown`: it has not heard what partitions are to decide by.
 * - `clockRate`: its clock runs faster or slower than a majority's; time that it stamps cannot be trusted.
 * - `diskStalled`: a write takes too long; it could acknowledge nothing. Found by the driver itself.
 */
export type Hindrance = 'lowDisk' | 'stopping' | 'draining' | 'rulesUnknown' | 'clockRate' | 'diskStalled';

function effectOf(hindrance: Hindrance): Willingness {
  switch (hindrance) {
    case 'lowDisk':
    case 'stopping':
    case 'draining':
    case 'rulesUnknown':
      return 'reluctant';
    case 'clockRate':
    case 'diskStalled':
      return 'unfit';
  }
}

export class Hindrances {
  readonly #present = new Set<Hindrance>();

  /** Returns whether that is news. */
  set(hindrance: Hindrance, isPresent: boolean): boolean {
    if (this.#present.has(hindrance) === isPresent) return false;
    if (isPresent) this.#present.add(hindrance);
    else this.#present.delete(hindrance);
    return true;
  }

  get willingness(): Willingness {
    const effects = [...this.#present].map(effectOf);
    if (effects.includes('unfit')) return 'unfit';
    return effects.includes('reluctant') ? 'reluctant' : 'willing';
  }
}
