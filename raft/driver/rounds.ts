/**
 * Rounds of proposals: the groups of a node propose together, and again when the node has applied what they proposed and answered it. A write, a frame and an answer cost each node about the same with one request in it as with a hundred; so whatever comes
 * while a round is on its way shares the next one, and so do the clients that the round answers. The turn that applies a round
 * proposes nothing yet, so that its answers leave first.
 *
 * A group that finds no quorum keeps the others waiting for two ticks, once.
 */
import type { Group } from './group.ts';
import type { GroupId } from '../types.ts';

/** A round that is not applied at the second tick is not waited for. */
const ROUND_TICKS_MAX = 2;

interface Proposed {
  readonly group: Group;
  /** Index of the entry that the group proposed. */
  readonly index: number;
}

export class Rounds {
  /** What the round proposed, without the entries of late groups. */
  readonly #awaited: Proposed[] = [];
  #ticks = 0;
  /** Groups that took too long, each with the index of the entry that it lacks: no round waits for them until they have applied it. */
  readonly #late = new Map<GroupId, number>();

  /** The next round may begin. */
  get isOver(): boolean {
    return !this.#awaited.some(isOnItsWay);
  }

  /** A group has proposed this entry, in the round that began last. */
  proposed(group: Group, index: number): void {
    if (this.#late.size > 0) {
      if (group.core.applied < (this.#late.get(group.id) ?? 0)) return;
      this.#late.delete(group.id);
    }
    this.#awaited.push({ group, index });
  }

  /** A round begins. */
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

/** The node still leads the group, and has not applied the entry. */
function isOnItsWay({ group: { core, isRemoved }, index }: Proposed): boolean {
  return !isRemoved && core.role === 'leader' && core.applied < index;
}
