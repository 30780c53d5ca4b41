/** Mutants: answers where nobody can decide. In the simulator all rules fail closed. */
import type { Mutant } from './mutant.ts';

const WHY = 'no rule of the simulator fails open or locally';

export const FAIL_MODES: readonly Mutant[] = [
  {
    id: 'F1',
    bug: 'a rule that fails closed lets requests through where nobody can decide',
    law: 'without a quorum nothing is decided, unless the rule says so',
    edits: [{ in: 'followsFailModes', find: "rule.failMode !== 'closed'", replace: 'rule !== undefined' }],
    unitTest: { file: 'matching/fail-modes.test.ts', why: WHY },
  },
  {
    id: 'F2',
    bug: 'a rule that fails open lets a request through that another rule denied',
    law: 'no window over its limit',
    edits: [
      {
        in: 'outcomeOf',
        find: "if (denied !== undefined) return { kind: 'refused', ...denied };",
        replace: '',
      },
    ],
    unitTest: { file: 'matching/fail-modes.test.ts', why: WHY },
  },
  {
    id: 'F3',
    bug: 'a node without a quorum grants everything, not only its part of the limit',
    law: 'a node alone grants no more than floor(limit / nodes)',
    edits: [{ in: 'LocalLimits.take', find: 'if (waitMillis > 0) return waitMillis;', replace: '' }],
    unitTest: { file: 'limiter/local-limits.test.ts', why: WHY },
  },
  {
    id: 'F4',
    bug: 'reservations under other limits are given back though the request is let through',
    law: 'a granted request is charged under each limit that could be decided',
    edits: [
      {
        in: 'MatchedRequests.#firstAnswered',
        find: 'isRefused ? isCertain(answer) : isGrant(answer) && answer.isRepeat === true',
        replace: 'isCertain(answer) && (isRefused || !isGrant(answer) || answer.isRepeat === true)',
      },
    ],
    unitTest: { file: 'matching/fail-modes.test.ts', why: WHY },
  },
  {
    id: 'F5',
    bug: 'a request that another limit denies still uses up a part of the limit of its node',
    law: 'a denied request is charged nowhere',
    edits: [
      {
        in: 'takeLocal',
        find: 'if (!isAllowed(answer)) giveBackTaken(asking);',
        replace: 'isAllowed(answer);',
      },
    ],
    unitTest: { file: 'matching/fail-modes.test.ts', why: WHY },
  },
];
