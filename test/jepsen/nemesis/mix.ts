/** Many nemeses together: packages drawn by chance, run at the same time, with pauses in which nothing is wrong. */
import { between, chance, fork, shuffled } from './draw.ts';
import { FAMILIES, hold, type Nemesis, type NemesisContext } from './nemesis.ts';

/** After so many packages another selection of nemeses takes turns: what is left out matters as much as what is in. */
const PACKAGES_PER_SELECTION = 6;
const TOGETHER_MAX = 3;

function selection(context: NemesisContext, nemeses: readonly Nemesis[]): Nemesis[] {
  const some = nemeses.filter(() => chance(context.random, 2));
  return some.length === 0 ? [...nemeses] : some;
}

/** At most one of each family: two of them would undo what the other did. */
function drawPackage({ random }: NemesisContext, nemeses: readonly Nemesis[]): Nemesis[] {
  const count = between(random, 1, TOGETHER_MAX);
  const inOrder = shuffled(random, nemeses);
  const families = shuffled(random, FAMILIES);
  return families
    .map((family) => inOrder.find((nemesis) => nemesis.family === family))
    .filter((nemesis) => nemesis !== undefined)
    .slice(0, count);
}

/**
 * Runs packages until the context's signal is aborted, or `packages` of them. Resolves when all has healed. Rejects,
 * also only then, if something did not heal; nothing new is begun after that.
 */
export async function runMix(
  context: NemesisContext,
  nemeses: readonly Nemesis[],
  packages = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { random, signal } = context;
  let selected: readonly Nemesis[] = nemeses;
  for (let i = 0; i < packages && !signal.aborted; i += 1) {
    if (i % PACKAGES_PER_SELECTION === 0) selected = selection(context, nemeses);
    const runs = drawPackage(context, selected).map(async (nemesis) => {
      const own = { ...context, random: fork(random) };
      await hold(own, 0, 3_000);
      if (!signal.aborted) await nemesis.run(own);
    });
    const results = await Promise.allSettled(runs);
    const errors = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    if (errors.length > 0) throw new AggregateError(errors, `not healed: ${errors.map(String).join('; ')}`);
    // A quarter of the time or so nothing is wrong, now and then for long enough that all is as it was.
    await hold(context, 200, chance(random, 3) ? 10_000 : 2_000);
  }
}
