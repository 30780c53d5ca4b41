/** Lists all targets, in the order in which they run. */
import type { Target } from '../target.ts';
import { CLUSTER_FILES } from './cluster-files.ts';
import { FRAMES } from './frames.ts';
import { HTTP } from './http.ts';
import { LOG } from './log.ts';
import { PAYLOADS } from './payloads.ts';
import { RESP } from './resp.ts';
import { RLS } from './rls.ts';
import { RULES } from './rules.ts';
import { SNAPSHOTS } from './snapshots.ts';
import { STORAGE } from './storage.ts';

export const TARGETS: readonly Target[] = [
  ...HTTP,
  ...RESP,
  ...RLS,
  ...FRAMES,
  ...PAYLOADS,
  ...LOG,
  ...SNAPSHOTS,
  ...STORAGE,
  ...CLUSTER_FILES,
  ...RULES,
];

/** Finds targets by name. @throws RangeError that lists the names */
export function targetOf(name: string): Target {
  const found = TARGETS.find((target) => target.name === name);
  if (found !== undefined) return found;
  throw new RangeError(`${name} is no target; there are ${TARGETS.map((target) => target.name).join(', ')}`);
}
