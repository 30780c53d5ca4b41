/** Mutants: windows, denials, request ids and room. */
import type { Mutant } from './mutant.ts';

export const LIMITER: readonly Mutant[] = [
  {
    id: 'M11',
    bug: 'a grant leaves its window a millisecond early',
    edits: [
      {
        in: 'LogRuns.liveCost',
        find: 'const first = this.firstLive(t - windowMillis); if (first === this.count) return 0; return (',
        replace:
          'const first = this.firstLive(t - windowMillis + 1); if (first === this.count) return 0; return (',
      },
    ],
  },
  {
    id: 'M15',
    bug: 'a remembered request id is not found again',
    edits: [
      {
        in: 'RequestMemory.find',
        find: 'return id !== NONE && this.view(id).expiresMillis >= nowMillis ? id : NONE;',
        replace: 'return NONE;',
      },
    ],
  },
  {
    id: 'X7',
    bug: 'denials are decided at a time that lags behind',
    edits: [
      {
        in: 'LimiterStateMachine.quickDenial',
        find: 'if (!judgement.fits) return',
        replace: 'if (!judgement.fits || judgement.live + judgement.cost === keys.rule.limit) return',
      },
    ],
  },
  {
    id: 'X12',
    bug: 'a remembered request id is answered whatever is asked under it',
    edits: [
      {
        in: 'conflictBetween',
        find: 'if (first.cost !== other.cost)',
        replace: 'return undefined; if (first.cost !== other.cost)',
      },
    ],
  },
  {
    id: 'X12c',
    bug: 'another request under the id of one in flight joins it',
    edits: [
      {
        in: 'Partition.#joinsEarlierAttempt',
        find: 'const conflict = conflictBetween(questionOf(earlier.request), questionOf(request));',
        replace: 'const conflict = undefined;',
      },
    ],
  },
  {
    id: 'X13',
    bug: 'every receipt names the first place of its entry',
    edits: [
      {
        in: 'receiptAt',
        find: '{ term, index, position, timeMillis }',
        replace: '{ term, index, position: 0, timeMillis }',
      },
    ],
  },
  {
    id: 'X16',
    bug: 'new users are taken though there is no room to remember them',
    edits: [
      { in: 'StateSize.hasRoom', find: 'return this.bytes + bytes <= capBytes &&', replace: 'return ' },
    ],
  },
  {
    id: 'X17',
    bug: 'where there is no room nobody forgets what is idle',
    edits: [{ in: 'Housekeeping.want', find: 'return this.#isDue;', replace: 'return false;' }],
  },
];
