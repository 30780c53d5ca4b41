/** Mutants: requests whose limits rules find: reserved in several partitions, granted by all or given back, by one version of the rules. */
import type { Mutant } from './mutant.ts';

export const MATCHING: readonly Mutant[] = [
  {
    id: 'A1',
    bug: 'what is reserved for a request that another limit denies is not given back',
    law: 'who is not granted leaves nothing charged',
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
    law: 'who is granted holds all its limits',
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
    bug: 'reservations of a request that an earlier attempt was granted are kept',
    law: 'who is not granted leaves nothing charged',
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
    bug: 'the first partition is asked when one reservation is answered, and not all',
    law: 'who is granted holds all its limits',
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
    bug: 'limits are asked for, and not by which rules they were found',
    law: 'nothing is granted by limits that other rules have found',
    edits: [{ in: 'requestFor', find: 'matchedBy: version', replace: 'matchedBy: undefined' }],
  },
  {
    id: 'A6',
    bug: 'a partition grants by limits that other rules have found than it decides by',
    law: 'nothing is granted by limits that other rules have found',
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
    bug: 'what waits for a place in the log is decided by rules that are proposed before it',
    law: 'nothing is granted by limits that other rules have found',
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
    bug: 'a request is granted by the first partition, though a reservation was denied',
    law: 'who is granted holds all its limits',
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
    bug: 'what a node denies by itself it denies to a retry that was granted before',
    law: 'who was granted is told that again',
    edits: [
      {
        in: 'MatchedRequests.#deny',
        find: 'this.#recall(parts[0]!, asking, ruleSet, () =>',
        replace: '((_: unknown, report: () => void) => report())(parts, () =>',
      },
    ],
    unitTest: {
      file: 'matching/matched-requests.test.ts',
      why: 'an answer that denies is no law of its own: others may have taken what was granted back',
    },
  },
  {
    id: 'A13',
    bug: 'a reservation is given back twice',
    law: 'nobody gives back what is not reserved any more',
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
    bug: 'a refund is told to have reached all partitions though other rules made the grant',
    law: 'what stays charged is not said to be free',
    edits: [
      {
        in: 'refundAs',
        find: 'rulesVersion !== ruleSet.version || others.length === 0',
        replace: 'others.length === 0',
      },
    ],
    unitTest: {
      file: 'matching/matched-refunds.test.ts',
      why: 'nothing in a log hangs on what is told of it',
    },
  },
  {
    id: 'A21',
    bug: 'a refund by descriptors is asked where the request of somebody who is no customer would be remembered',
    law: 'what was granted can be given back',
    edits: [
      {
        in: 'refundAs',
        find: 'customer === undefined ? parts : ownFirst(parts, customer, partitionOf(customer.key))',
        replace: 'parts',
      },
    ],
    unitTest: {
      file: 'matching/matched-refunds.test.ts',
      why: 'the simulator gives back by keys: what stays charged denies too much, which is legal',
    },
  },
  {
    id: 'A12',
    bug: 'a node denies by what it has applied of a partition that it does not lead',
    law: 'a denial follows from what its leader has applied',
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
    bug: 'a rule in shadow denies',
    law: 'a rule on trial denies nothing',
    edits: [{ in: 'limitsOf', find: 'limiting.filter(({ rule }) => !rule.shadow)', replace: 'limiting' }],
  },
  {
    id: 'A10',
    bug: 'a node that asked twice takes its own grant for that of an earlier attempt, and gives back what it reserved',
    law: 'who is granted holds all its limits',
    edits: [
      {
        in: 'OpenRequest.verdictOn',
        find: 'this.#mayBeProposed ? withoutRepeat(answer) : answer',
        replace: 'answer',
      },
    ],
    unitTest: {
      file: 'router/outcomes.test.ts',
      why: 'from outside it is the same answer, and only the router knows that it asked twice',
    },
  },
  {
    id: 'A20',
    bug: 'a request is denied by rules that are applied, though newer ones in the log have found its limits',
    law: 'a request is decided by the rules that found its limits, or not at all',
    edits: [
      {
        in: 'Partition.#allow',
        find: "isEarly ? unavailable('rules_changed', false) : rejection",
        replace: 'rejection',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'the simulator holds grants against the rules, and a denial too many is legal while they change',
    },
  },
  {
    id: 'A22',
    bug: 'any rule may be asked by its id, so that the others do not bind',
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
      why: 'users of the simulator ask partitions, which know no names',
    },
  },
  {
    id: 'A23',
    bug: 'what no rule of its node limits is let through, whatever rules are in force',
    law: 'the rules in force are those that decide',
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
    bug: 'a leader tells how a key stands by its own word, though another one may lead by now',
    law: 'a look tells all that was applied before it came',
    edits: [
      { in: 'Partition.#peek', find: 'this.#init.readIndex(', replace: '((reported) => reported(0))(' },
    ],
    features: ['peeks'],
    faults: ['isolateLeader', 'pauseLeader', 'oneWay', 'halves'],
  },
  {
    id: 'A25',
    bug: 'the rules of a node are taken for those in force where they find no limit',
    law: 'the rules in force are those that decide',
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
    bug: 'a reservation that nobody could give back at once is left charged',
    law: 'what is reserved in vain is given back',
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
    bug: 'what no log held yet is taken for given back',
    law: 'what is reserved in vain is given back',
    edits: [
      {
        in: 'isToBeAskedAgain',
        find: "answer.kind === 'unavailable' || nowMillis < doubtUntilMillis",
        replace: "answer.kind === 'unavailable'",
      },
    ],
    unitTest: {
      file: 'matching/reservations.test.ts',
      why: 'a question for a reservation must overtake the one that gives it back: not in 60 worlds that break leaders',
    },
  },
  {
    id: 'A28',
    bug: 'the id of a request is kept by the key of the first rule',
    law: 'a retry is charged once, in whatever order the rules are',
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
    bug: 'a denial names the limit that takes longest of those that were asked, and the others are not looked at',
    law: 'an answer is that of the limit that binds',
    edits: [
      {
        in: 'longestDenial',
        find: 'isBlocked ? [] : parts.filter((part) => !isAnswered(part))',
        replace: 'parts.filter((part) => isBlocked && !isAnswered(part))',
      },
    ],
    unitTest: {
      file: 'matching/longest-denial.test.ts',
      why: 'which of several limits a denial names is no law of the simulator: each of them denies',
    },
  },
  {
    id: 'A33',
    bug: 'who asks for one rule is under the limits of another that somebody asked for before',
    law: 'a rule that is asked for decides alone',
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
      why: 'in the simulator documents have no named rules',
    },
  },
  {
    id: 'A34',
    bug: 'a request that came with less time than those before waits as long as they do',
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
      why: 'all rules of the simulator are closed: what is asked has as much time as its request',
    },
  },
];
