/**
 * Rounds of proposals. All groups of a node propose together, and again when the node has applied that round and
 * answered its requests. A write, a frame and an answer cost about the same for one request as for a hundred, so
 * requests that arrive during a round share the next one. The turn that applies a round proposes nothing yet, so that
 * its answers leave first.
 *
 * A group without a quorum delays the others for two ticks, once.
 */
import type { Group } from './group.ts';
import type { GroupId } from '../types.ts';

/** After this many ticks the next round begins, even if some entries of the round are not applied. */
const ROUND_TICKS_MAX = 2;

interface Proposed {
  readonly group: Group;
  /** Index of the entry that the group proposed. */
  readonly index: number;
}

/** The rounds of one node. */
export class Rounds {
  /** The proposals of the round, without those of late groups. */
  readonly #awaited: Proposed[] = [];
  #ticks = 0;
  /**
   * Late groups, each with the index of the entry that took too long. Rounds do not wait for them until it is applied.
   */
  readonly #late = new Map<GroupId, number>();

  /** Whether the next round may begin. */
  get isOver(): boolean {
    return !this.#awaited.some(isOnItsWay);
  }

  /** A group proposed this entry in the current round. */
  proposed(group: Group, index: number): void {
    if (this.#late.size > 0) {
      if (group.core.applied < (this.#late.get(group.id) ?? 0)) return;
      this.#late.delete(group.id);
    }
    this.#awaited.push({ group, index });
  }

  /** Begins a round. */
  begin(): void {
    this.#awaited.length = 0;
    this.#ticks = 0;
  }

  tick(): void {
    this.#ticks += 1;
    if (this.#ticks < ROUND_TICKS_MAX) return;
    for (const { group, index } of this.#awaited.filter(isOnItsWay)) this.#late.set(group.id, index);
    this.begin();
  }

  /** The group has left the node. */
  forget({ id }: Group): void {
    this.#late.delete(id);
  }
}

/** Whether the node still leads the group and has not applied the entry. */
function isOnItsWay({ group: { core, isRemoved }, index }: Proposed): boolean {
  return !isRemoved && core.role === 'leader' && core.applied < index;
}
