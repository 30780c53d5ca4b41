/** A module loader hook: applies one edit to one compiled module while it is loaded. */
import type { InitializeHook, LoadHook } from 'node:module';
import type { SourceEdit } from './mutants.ts';

let edit: SourceEdit | undefined;

export const initialize: InitializeHook<SourceEdit> = (data) => {
  edit = data;
};

export const load: LoadHook = async (url, context, nextLoad) => {
  const result = await nextLoad(url, context);
  if (edit === undefined || !url.endsWith(`/dist/${edit.module}`)) return result;
  const { source } = result;
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
  const parts = text.split(edit.find);
  if (parts.length !== 2) throw new Error(`${edit.module} has ${parts.length - 1} places to edit, not one`);
  return { ...result, source: parts.join(edit.replace), shortCircuit: true };
};
