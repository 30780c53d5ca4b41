/** A module loader hook: edits compiled modules while they are loaded. */
import type { InitializeHook, LoadHook } from 'node:module';
import type { SourceEdit } from './mutants.ts';

let edits: readonly SourceEdit[] = [];

export const initialize: InitializeHook<readonly SourceEdit[]> = (data) => {
  edits = data;
};

export const load: LoadHook = async (url, context, nextLoad) => {
  const result = await nextLoad(url, context);
  const wanted = edits.filter(({ module }) => url.endsWith(`/dist/${module}`));
  if (wanted.length === 0) return result;
  const { source: loaded } = result;
  let source = typeof loaded === 'string' ? loaded : new TextDecoder().decode(loaded);
  for (const { module, find, replace } of wanted) {
    const parts = source.split(find);
    if (parts.length !== 2) throw new Error(`${module} has ${parts.length - 1} places to edit, not one`);
    source = parts.join(replace);
  }
  return { ...result, source, shortCircuit: true };
};
