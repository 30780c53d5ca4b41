/** A module loader hook that replaces the code of compiled modules. */
import type { InitializeHook, LoadHook } from 'node:module';

let modules: ReadonlyMap<string, string> = new Map();

/** Keyed by path below `dist`, like `raft/log.js`. */
export const initialize: InitializeHook<ReadonlyMap<string, string>> = (data) => {
  modules = data;
};

export const load: LoadHook = async (url, context, nextLoad) => {
  const source = modules.get(url.split('/dist/').at(-1) ?? '');
  return source === undefined ? nextLoad(url, context) : { format: 'module', source, shortCircuit: true };
};
