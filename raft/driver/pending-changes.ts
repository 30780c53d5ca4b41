/** Requested changes of members, which begin with the next turn. */
import { assert } from '../assert.ts';
import { type Group, reportStatus } from './group.ts';
import type { MembershipDone } from './group-application.ts';
import type { MembershipChange } from '../membership.ts';

/** A requested change of members of one group. */
export interface AskedChange {
  readonly group: Group;
  readonly change: MembershipChange;
  readonly epoch: number;
  readonly done: MembershipDone;
}

/** The requested changes of all groups of a node. */
export class PendingChanges {
  #asked: AskedChange[] = [];

  ask(change: AskedChange): void {
    this.#asked.push(change);
  }

  has(group: Group): boolean {
    return this.#asked.some((asked) => asked.group === group);
  }

  /** Begins all requested changes, or answers why one was refused. */
  begin(activate: (group: Group) => void): void {
    for (const { group, change, epoch, done } of this.#asked.splice(0)) {
      reportStatus(group);
      const begun = group.core.changeMembership(change, epoch);
      if (typeof begun === 'string') {
        done({ ok: false, reason: begun });
        continue;
      }
      assert(
        group.change === undefined,
        'group {} began a change before the previous one was complete',
        group.id,
      );
      group.change = { index: begun.index, term: begun.term, done };
      activate(group);
    }
  }

  /** This node no longer holds the group: refuses its requests. */
  forget(group: Group): void {
    const lost = this.#asked.filter((asked) => asked.group === group);
    this.#asked = this.#asked.filter((asked) => asked.group !== group);
    for (const { done } of lost) done({ ok: false, reason: 'notLeader' });
  }
}
