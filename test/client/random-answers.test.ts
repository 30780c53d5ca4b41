/**
 * Tests a client with random answers: it reports only real grants, and without an id never repeats a request that may
 * have counted.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { denialOf, grantOf, Played, unavailableOf, watched } from './played.ts';

/** What a fake node does with the next batch. */
const FATES = {
  grant: (played: Played) => played.last.answer(grantOf()),
  deny: (played: Played) => played.last.answer(denialOf()),
  break: (played: Played) => played.last.fail(true),
  refuse: (played: Played) => played.last.fail(false),
  proposed: (played: Played) => played.last.answer(unavailableOf('unknown_outcome', true)),
  notProposed: (played: Played) => played.last.answer(unavailableOf('no_leader', false)),
  garbage: (played: Played) => played.last.respond(200, '{"answers":[]}'),
  silence: async (played: Played) => played.pass(500),
} satisfies Record<string, (played: Played) => unknown>;
type Fate = keyof typeof FATES;
const DOUBTFUL: ReadonlySet<Fate> = new Set(['break', 'proposed', 'garbage', 'silence']);

/** Waits for the next batch; false if there is none. */
async function nextIsSent(played: Played): Promise<boolean> {
  await played.settle();
  for (let waits = 0; waits < 40; waits += 1) {
    if (played.sent.at(-1)?.isOpen === true) return true;
    await played.pass(50);
  }
  return false;
}

/** Lists the violations of one request. */
async function mistakesOf(fates: readonly Fate[], requestIds: boolean): Promise<string[]> {
  const mistakes: string[] = [];
  const played = new Played({ requestIds, deadlineMillis: 5_000, attemptMillis: 500 });
  const asked = watched(played.client.allow({ userId: 'ada' }));
  let mayHaveCounted = false;
  let last: Fate | undefined;
  for (const fate of fates) {
    if (!(await nextIsSent(played))) break;
    if (mayHaveCounted && !requestIds) mistakes.push('it was repeated without an id');
    last = fate;
    mayHaveCounted ||= DOUBTFUL.has(fate);
    await FATES[fate](played);
    await played.settle();
    if (asked.value !== undefined) break;
  }
  await played.pass(6_000);
  if (asked.value?.allowed === true && last !== 'grant') mistakes.push('no node granted it');
  if (asked.value === undefined && asked.error === undefined)
    mistakes.push('it had no result by its deadline');
  if (asked.error?.isDefinite === true && mayHaveCounted) mistakes.push('it may have counted');
  const ids = new Set(played.sent.flatMap(({ requests }) => requests.map(({ requestId }) => requestId)));
  if (ids.size !== 1 || ids.has(undefined) === requestIds) mistakes.push('it had several ids, or none');
  return mistakes;
}

describe('a client with random answers', () => {
  it('returns only real grants, and repeats a request that may have counted under its id or not at all', async () => {
    const fate = fc.constantFrom(...(Object.keys(FATES) as Fate[]));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fate, { minLength: 1, maxLength: 12 }),
        fc.boolean(),
        async (fates, requestIds) => {
          expect(await mistakesOf(fates, requestIds)).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });
});
