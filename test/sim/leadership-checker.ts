/**
 * Checks the answers that a leader gives at once. It may read its state only after it has applied an entry of its own
 * term, and with it all decisions of former leaders (Raft dissertation, 6.4). A cost above the limit in force, which
 * can never be granted, must be refused without a write.
 */
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { CustomerRecord } from '../../src/api/customer-record.ts';
import type { Answer, UserRequest } from '../../src/api/user-request.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { Partition } from '../../src/partition/partition.ts';
import type { Rule } from '../../src/api/rule.ts';
import type { Committed } from './group-history.ts';
import { askedBy, limitsOf } from './id-ledger.ts';
import { capacityOf } from './naive-meters.ts';
import { ruleOfKey } from './naive-record.ts';
import { check } from './story.ts';

/** A request that a leader appends to its log, by its state after entry `index`. */
export interface Proposed {
  readonly node: NodeId;
  readonly group: GroupId;
  readonly index: number;
  readonly request: AllowRequest;
}

export interface LeadershipCheckerInit {
  readonly entryAt: (group: GroupId, index: number) => Committed | undefined;
  readonly tableAt: (group: GroupId, index: number) => RuleTable | undefined;
  readonly recordAt: (group: GroupId, index: number, userId: string) => CustomerRecord;
  /** A leader that has read its state does not answer at once. */
  readonly proposed: (proposal: Proposed) => void;
}

export class LeadershipChecker {
  readonly #init: LeadershipCheckerInit;

  constructor(init: LeadershipCheckerInit) {
    this.#init = init;
  }

  /** `applied` returns the index up to which the replica has applied its log. */
  observe(node: NodeId, group: GroupId, app: GroupApplication, applied: () => number): void {
    if (!(app instanceof Partition)) return;
    let leadership: number | undefined;
    const statusChanged = app.statusChanged.bind(app);
    app.statusChanged = (status) => {
      leadership = status.isLeader ? status.term : undefined;
      statusChanged(status);
    };
    const decide = app.decide.bind(app);
    app.decide = (request, deadlineMillis, done) => {
      const index = applied();
      const isLeading =
        leadership !== undefined && this.#init.entryAt(group, index)?.entry.term === leadership;
      // The log of a new partition has no rules yet: requests wait for them.
      const mayRead = isLeading && this.#init.tableAt(group, index) !== undefined;
      let isAtOnce = true;
      let isAnswered = false;
      const isTooMuch = mayRead && this.#isTooMuch(group, index, request);
      decide(request, deadlineMillis, (answer) => {
        check(
          !isTooMuch || answer.kind === 'invalid' || isOfOtherRules(request, answer),
          () =>
            `node ${node} answers ${JSON.stringify(answer)} in group ${group} to ${JSON.stringify(request)}`,
        );
        check(
          !(answer.kind === 'decision' || answer.kind === 'keyStatus') || !isAtOnce || mayRead,
          () =>
            `node ${node} answers by entry ${index} of group ${group}, before it has applied an entry of its term ${leadership}`,
        );
        isAnswered = true;
        done(answer);
      });
      isAtOnce = false;
      check(
        isAnswered || !isTooMuch,
        () => `node ${node} proposes in group ${group} a cost above the limit: ${JSON.stringify(request)}`,
      );
      if (!isAnswered && mayRead && request.ask === undefined)
        this.#init.proposed({ node, group, index, request });
    };
  }

  /** A request with an id may wait for the answer of an earlier attempt. */
  #isTooMuch(group: GroupId, index: number, request: UserRequest): boolean {
    if (request.ask !== undefined || request.requestId !== undefined) return false;
    const rules = this.#init.tableAt(group, index)?.rules;
    const ruleOf = (named: string): Rule | undefined =>
      named === '' ? rules?.[0] : rules?.find(({ id }) => id === named);
    const records = limitsOf(askedBy(request)).map(({ userId }) => this.#init.recordAt(group, index, userId));
    // The customer's record, and whether it is blocked, is checked first.
    if (request.guard !== undefined || records.some(({ isBlocked }) => isBlocked)) return false;
    return limitsOf(askedBy(request)).some(({ rule: named, cost, isSettled }, i) => {
      if (isSettled === true) return false;
      const rule = ruleOf(named);
      const capacity = rule && capacityOf(ruleOfKey(rule, records[i]!));
      // A limit of 0 denies everything.
      return capacity !== undefined && capacity > 0 && cost > capacity;
    });
  }
}

/** The version of the rules that found the limits is checked before those rules are applied. */
function isOfOtherRules(request: UserRequest, answer: Answer): boolean {
  const isMatched = request.ask === undefined && request.matchedBy !== undefined;
  return isMatched && answer.kind === 'unavailable' && answer.reason === 'rules_changed';
}
