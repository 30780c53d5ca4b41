/** Runs many nemeses together: random packages, each run at the same time, with pauses without faults. */
import { between, chance, fork, shuffled } from './draw.ts';
import { FAMILIES, hold, type Nemesis, type NemesisContext } from './nemesis.ts';

/**
 * After this many packages another selection of nemeses is used: the absence of some faults matters as much as the
 * presence of others.
 */
const PACKAGES_PER_SELECTION = 6;
const TOGETHER_MAX = 3;

function selection(context: NemesisContext, nemeses: readonly Nemesis[]): Nemesis[] {
  const some = nemeses.filter(() => chance(context.random, 2));
  return some.length === 0 ? [...nemeses] : some;
}

/** At most one nemesis of each family, since two would undo each other's faults. */
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
 * Runs packages until the context's signal is aborted, or `packages` of them. Resolves when everything has healed.
 * Rejects only if something did not heal; nothing new starts after that.
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
    // About a quarter of the time there is no fault, sometimes for long enough that everything recovers.
    await hold(context, 200, chance(random, 3) ? 10_000 : 2_000);
  }
}
