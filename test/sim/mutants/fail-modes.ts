/** Mutants: what is answered where nobody can decide. The rules of the simulator's worlds are closed. */
import type { Mutant } from './mutant.ts';

const WHY = 'no world of the simulator has rules that are open or local';

export const FAIL_MODES: readonly Mutant[] = [
  {
    id: 'F1',
    bug: 'a closed rule is let through where nobody can decide',
    law: 'nobody decides without a quorum, unless its rule says so',
    edits: [{ in: 'followsFailModes', find: "rule.failMode !== 'closed'", replace: 'rule !== undefined' }],
    unitTest: { file: 'matching/fail-modes.test.ts', why: WHY },
  },
  {
    id: 'F2',
    bug: 'an open rule that nobody could decide lets through what another rule denied',
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
    bug: 'a node grants all that it asks its own share for',
    law: 'no more than floor(limit / nodes) by one node alone',
    edits: [{ in: 'LocalLimits.take', find: 'if (waitMillis > 0) return waitMillis;', replace: '' }],
    unitTest: { file: 'limiter/local-limits.test.ts', why: WHY },
  },
  {
    id: 'F4',
    bug: 'what others reserved is given back though the request is let through',
    law: 'what is granted is charged under each limit that could be decided',
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
    bug: 'a request that another limit denies uses up the share of its node',
    law: 'what is denied is charged nowhere',
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
