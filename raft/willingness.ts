/**
 * Whether a node should lead its groups, and the conditions that keep it from leading. Pure; the driver passes the
 * result to its cores.
 */

/**
 * How willing a node is to lead:
 *
 * - `willing`: leads every group that elects it.
 * - `reluctant`: does not depose a working leader, hands over what it leads, and leads only what nobody else does,
 *   because a group without a leader could not even change its members.
 * - `unfit`: neither leads nor campaigns. It hands over, and gives up what nobody takes within an election timeout.
 */
export type Willingness = 'willing' | 'reluctant' | 'unfit';

/**
 * A condition that keeps a node from leading:
 *
 * - `lowDisk`: less free disk space than the floor. No new requests are taken. Every API uses this name for it.
 * - `stopping`: the process is about to end.
 * - `draining`: an operator drained the node, until further notice.
 * - `rulesUnknown`: the node has not received the rules yet.
 * - `clockRate`: its clock runs faster or slower than those of a majority, so its time stamps cannot be trusted.
 * - `diskStalled`: a disk write takes too long, so it could acknowledge nothing. The driver itself detects this.
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

/** The conditions that apply to a node now. */
export class Hindrances {
  readonly #present = new Set<Hindrance>();

  /** Sets or clears a condition. Returns whether that changed anything. */
  set(hindrance: Hindrance, isPresent: boolean): boolean {
    if (this.#present.has(hindrance) === isPresent) return false;
    if (isPresent) this.#present.add(hindrance);
    else this.#present.delete(hindrance);
    return true;
  }

  /** The strongest effect of all conditions. */
  get willingness(): Willingness {
    const effects = [...this.#present].map(effectOf);
    if (effects.includes('unfit')) return 'unfit';
    return effects.includes('reluctant') ? 'reluctant' : 'willing';
  }
}
