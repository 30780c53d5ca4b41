/** Mutants: requests whose limits are found by rules and reserved in several partitions: all of them grant, or none. */
import type { Mutant } from './mutant.ts';

export const MATCHING: readonly Mutant[] = [
  {
    id: 'A1',
    bug: 'the reservations of a request are not given back when another limit denies it',
    law: 'a request that is not granted leaves nothing charged',
    edits: [
      {
        in: 'MatchedRequests.#reservedAll',
        find: "case 'refused': this.reservations.release(reserved);",
        replace: "case 'refused':",
      },
    ],
  },
  {
    id: 'A2',
    bug: 'reservations are given back though the first partition may have granted the request',
    law: 'a granted request is charged under all its limits',
    edits: [
      {
        in: 'MatchedRequests.#firstAnswered',
        find: 'isRefused ? isCertain(answer) : isGrant(answer) && answer.isRepeat === true',
        replace: 'isRefused || (isGrant(answer) && answer.isRepeat === true)',
      },
    ],
  },
  {
    id: 'A3',
    bug: 'a retry keeps its own reservations though an earlier attempt was granted',
    law: 'a request that is not granted leaves nothing charged',
    edits: [
      {
        in: 'MatchedRequests.#firstAnswered',
        find: 'isRefused ? isCertain(answer) : isGrant(answer) && answer.isRepeat === true',
        replace: 'isRefused && isCertain(answer)',
      },
    ],
  },
  {
    id: 'A4',
    bug: 'the first partition is asked as soon as one reservation is answered, not when all are',
    law: 'a granted request is charged under all its limits',
    edits: [
      {
        in: 'reserveAll',
        find: 'if (open === 0) done();',
        replace: 'if (open === reserved.length - 1) done();',
      },
    ],
  },
  {
    id: 'A5',
    bug: 'requests are sent without the version of the rules that found their limits',
    law: 'limits that one version of the rules found are never granted by another',
    edits: [{ in: 'requestFor', find: 'matchedBy: version', replace: 'matchedBy: undefined' }],
  },
  {
    id: 'A6',
    bug: 'a partition grants requests whose limits were found by other rules than its own',
    law: 'limits that one version of the rules found are never granted by another',
    edits: [
      {
        in: 'Partition.#rejectionAtOnce',
        find: 'matchedBy !== this.#own.rulesAhead(this.#term)',
        replace: 'matchedBy < 0',
      },
    ],
  },
  {
    id: 'A7',
    bug: 'requests that wait for the log are decided by rules that are proposed before them',
    law: 'limits that one version of the rules found are never granted by another',
    edits: [
      {
        in: 'Waiters.answerMatchedByOther',
        find: 'if (others.length === 0) return;',
        replace: 'if (others.length >= 0) return;',
      },
    ],
  },
  {
    id: 'A8',
    bug: 'the first partition grants a request though a reservation for it was denied',
    law: 'a granted request is charged under all its limits',
    edits: [
      {
        in: 'MatchedRequests.#reservedAll',
        find: "case 'refused': this.reservations.release(reserved);",
        replace:
          "case 'refused': if (outcome.answer.kind === 'decision') { this.#askFirst(first, reserved, asking, ruleSet); return; } this.reservations.release(reserved);",
      },
    ],
  },
  {
    id: 'A11',
    bug: 'a node denies by itself a retry whose first attempt was granted',
    law: 'a granted request gets the same answer again',
    edits: [
      {
        in: 'MatchedRequests.#deny',
        find: 'this.#recall(parts[0]!, asking, ruleSet, () =>',
        replace: '((_: unknown, report: () => void) => report())(parts, () =>',
      },
    ],
    unitTest: {
      file: 'matching/matched-requests.test.ts',
      why: 'such a denial breaks no law by itself, because the grant may have been refunded',
    },
  },
  {
    id: 'A13',
    bug: 'a reservation is given back twice',
    law: 'a reservation is given back at most once',
    edits: [
      {
        in: 'Reservations.#askNext',
        find: 'waiting.delete(release); this.#giveBack(release, partition, line);',
        replace: `if (waiting.delete(release)) this.#giveBack({ ...release }, partition, line);
          this.#giveBack(release, partition, line);`,
      },
    ],
  },
  {
    id: 'A14',
    bug: 'a refund is reported as complete though the grant was made under other rules',
    law: 'a charge that stays is not reported as given back',
    edits: [
      {
        in: 'refundAs',
        find: 'rulesVersion !== ruleSet.version || others.length === 0',
        replace: 'others.length === 0',
      },
    ],
    unitTest: {
      file: 'matching/matched-refunds.test.ts',
      why: 'no law checks what a refund reports',
    },
  },
  {
    id: 'A21',
    bug: 'a refund for a customer goes first to the partition that would remember a request without a customer',
    law: 'a grant can be given back',
    edits: [
      {
        in: 'refundAs',
        find: 'customer === undefined ? parts : ownFirst(parts, customer, partitionOf(customer.key))',
        replace: 'parts',
      },
    ],
    unitTest: {
      file: 'matching/matched-refunds.test.ts',
      why: 'the simulator refunds by keys, and a charge that stays behind only denies too much, which is legal',
    },
  },
  {
    id: 'A12',
    bug: 'a node denies at once by the state of a partition that it does not lead',
    law: 'a denial follows from what the leader has applied',
    edits: [
      {
        in: 'Partition.deniedAtOnce',
        find: 'if (!this.#isLeader || !this.#canDecide) return undefined;',
        replace: '',
      },
    ],
  },
  {
    id: 'A9',
    bug: 'a shadow rule denies',
    law: 'a shadow rule denies nothing',
    edits: [{ in: 'limitsOf', find: 'limiting.filter(({ rule }) => !rule.shadow)', replace: 'limiting' }],
  },
  {
    id: 'A10',
    bug: 'a router that asked twice takes its own grant for one of an earlier attempt, and gives its reservations back',
    law: 'a granted request is charged under all its limits',
    edits: [
      {
        in: 'OpenRequest.verdictOn',
        find: 'this.#mayBeProposed ? withoutRepeat(answer) : answer',
        replace: 'answer',
      },
    ],
    unitTest: {
      file: 'router/outcomes.test.ts',
      why: 'clients see the same answer, and only the router knows that it asked twice',
    },
  },
  {
    id: 'A20',
    bug: 'a request is denied by the rules in force, though its limits were found by newer rules that are still in the log',
    law: 'a request is decided by the rules that found its limits, or not at all',
    edits: [
      {
        in: 'Partition.#allow',
        find: "wantsNewerRules ? unavailable('rules_changed', false) : rejection",
        replace: 'rejection',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'the simulator checks grants against the rules, and a denial too many is legal while they change',
    },
  },
  {
    id: 'A22',
    bug: 'a request can choose any rule by its id and so escape the others',
    law: 'every rule that matches decides',
    edits: [
      {
        in: 'RuleMatcher.constructor',
        find: 'if (one.rule.named === true) this.#named',
        replace: 'this.#named',
      },
    ],
    unitTest: {
      file: 'matching/named-rules.test.ts',
      why: 'users of the simulator ask partitions directly, which do not know names',
    },
  },
  {
    id: 'A23',
    bug: 'a request that no rule of its node limits is let through, even if other rules are in force',
    law: 'only the rules in force decide',
    edits: [
      {
        in: 'refusalIn',
        find: 'answer.keyStatus.rulesVersion <= rulesVersion',
        replace: 'answer.keyStatus.rulesVersion > 0',
      },
    ],
  },
  {
    id: 'A24',
    bug: 'a leader reports the state of a key without checking that it still leads',
    law: 'a peek shows everything that was applied before it came',
    edits: [
      { in: 'Partition.#peek', find: 'this.#init.readIndex(', replace: '((reported) => reported(0))(' },
    ],
    features: ['peeks'],
    faults: ['isolateLeader', 'pauseLeader', 'oneWay', 'halves'],
  },
  {
    id: 'A25',
    bug: 'a node that finds no limit takes its own rules for those in force',
    law: 'only the rules in force decide',
    edits: [
      {
        in: 'ConfirmedRules.areInForce',
        find: 'const asked = this.#asked;',
        replace: 'if (this.#asked >= 0) return done(undefined, 0); const asked = this.#asked;',
      },
    ],
  },
  {
    id: 'A26',
    bug: 'a reservation that could not be given back at once stays charged',
    law: 'a reservation made in vain is given back',
    features: ['documents'],
    faults: ['isolateLeader', 'halves', 'crashLeader', 'handOver'],
    edits: [
      {
        in: 'Reservations.#giveBack',
        find: 'if (isToBeAskedAgain(release, answer, nowMillis))',
        replace: 'if (nowMillis < 0)',
      },
    ],
  },
  {
    id: 'A27',
    bug: 'a reservation that is not in the log yet is taken for given back',
    law: 'a reservation made in vain is given back',
    edits: [
      {
        in: 'isToBeAskedAgain',
        find: "answer.kind === 'unavailable' || nowMillis < doubtUntilMillis",
        replace: "answer.kind === 'unavailable'",
      },
    ],
    unitTest: {
      file: 'matching/reservations.test.ts',
      why: 'the request that gives a reservation back must overtake the one that makes it: not in 60 worlds that break leaders',
    },
  },
  {
    id: 'A28',
    bug: 'a request id is remembered under the key of whichever rule comes first',
    law: 'a retry is charged once, in any order of the rules',
    edits: [
      {
        in: 'byKey',
        find: 'a === b ? 0 : rankOf(a) - rankOf(b) || compareText(a, b)',
        replace: '0',
      },
    ],
  },
  {
    id: 'A29',
    bug: 'a denial names the longest wait of the limits that were asked, without reading the others',
    law: 'an answer describes the limit that binds',
    edits: [
      {
        in: 'longestDenial',
        find: 'isBlocked ? [] : parts.filter((part) => !isAnswered(part))',
        replace: 'parts.filter((part) => isBlocked && !isAnswered(part))',
      },
    ],
    unitTest: {
      file: 'matching/longest-denial.test.ts',
      why: 'no law says which of several limits a denial names: each of them denies',
    },
  },
  {
    id: 'A33',
    bug: 'a request for one named rule gets the limits of another that was asked for before',
    law: 'a rule that is asked for by name decides alone',
    edits: [
      {
        in: 'RuleSet.#knownOfAnyUser',
        find: 'this.#ofAnyUser.set(rule, found);',
        replace:
          'this.#ofAnyUser.set(rule, found); if (found !== undefined) this.#ofAnyUser.set(undefined, found);',
      },
    ],
    unitTest: {
      file: 'matching/named-rules.test.ts',
      why: 'documents of the simulator have no named rules',
    },
  },
  {
    id: 'A34',
    bug: 'a request with a shorter deadline waits as long as those before it',
    law: 'a decision comes before its deadline, or never',
    edits: [
      {
        in: 'OpenRequests.add',
        find: 'last === undefined || open.deadlineMillis >= last.deadlineMillis',
        replace: 'last === undefined || open.deadlineMillis >= 0',
      },
    ],
    unitTest: {
      file: 'router/open-requests.test.ts',
      why: 'all rules of the simulator fail closed: what is asked has as much time as its request',
    },
  },
];
