/** Shrinks a finding by removing pieces as long as the rest is still a finding. */
import { execute, Finding } from './execute.ts';
import type { Target } from './target.ts';

/** The maximum number of executions; slow inputs take long. */
const TRIES_MAX = 2_000;

export async function shrunk(target: Target, finding: Finding): Promise<Finding> {
  let best = finding;
  let tries = 0;
  for (
    let size = Math.ceil(finding.input.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < best.input.length && tries < TRIES_MAX; tries += 1) {
      const { input } = best;
      const smaller = Buffer.concat([input.subarray(0, at), input.subarray(at + size)]);
      const found = await findingOf(target, smaller);
      if (found === undefined) at += size;
      else best = found;
    }
  }
  return best;
}

/** Returns the finding for this input; undefined if the parser handles it. */
export async function findingOf(target: Target, input: Buffer): Promise<Finding | undefined> {
  try {
    await execute(target, input);
    return undefined;
  } catch (error) {
    if (error instanceof Finding) return error;
    throw error;
  }
}
