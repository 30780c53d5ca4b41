/** Changes of members that were asked of this node and have not begun: they wait for the next turn. */
import { assert } from '../assert.ts';
import { type Group, tellStatus } from './group.ts';
import type { MembershipDone } from './group-application.ts';
import type { MembershipChange } from '../membership.ts';

export interface AskedChange {
  readonly group: Group;
  readonly change: MembershipChange;
  readonly epoch: number;
  readonly done: MembershipDone;
}

export class PendingChanges {
  #asked: AskedChange[] = [];

  ask(change: AskedChange): void {
    this.#asked.push(change);
  }

  has(group: Group): boolean {
    return this.#asked.some((asked) => asked.group === group);
  }

  /** Begins all of them, or says why not. */
  begin(activate: (group: Group) => void): void {
    for (const { group, change, epoch, done } of this.#asked.splice(0)) {
      tellStatus(group);
      const begun = group.core.changeMembership(change, epoch);
      if (typeof begun === 'string') {
        done({ ok: false, reason: begun });
        continue;
      }
      assert(
        group.change === undefined,
        'group {} began a change before the one before was complete',
        group.id,
      );
      group.change = { index: begun.index, term: begun.term, done };
      activate(group);
    }
  }

  /** This node does not hold the group any more. */
  forget(group: Group): void {
    const lost = this.#asked.filter((asked) => asked.group === group);
    this.#asked = this.#asked.filter((asked) => asked.group !== group);
    for (const { done } of lost) done({ ok: false, reason: 'notLeader' });
  }
}
