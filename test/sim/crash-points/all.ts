/** All scripts that are crashed at every boundary. */
import { Cluster } from './cluster.ts';
import { GROUP_VARIANTS, NODE_VARIANTS } from './crash.ts';
import type { CrashScript } from './enumerate.ts';
import { NodeRun } from './node-run.ts';
import { NODE_SCRIPTS } from './node-scripts.ts';
import { GROUP_SCRIPTS } from './scripts.ts';

/** How many crashes of a script of one group `npm run test:long` tries: about a twelfth of all. */
const GROUP_SAMPLE = 100;
/** The same for whole nodes: about one in two hundred, because a run takes several times as long. */
const NODE_SAMPLE = 25;

const groups = GROUP_SCRIPTS.map((script): CrashScript => ({
  name: script.name,
  variants: GROUP_VARIANTS,
  sample: GROUP_SAMPLE,
  begin: (start) => new Cluster({ script, ...start }),
}));

const nodes = NODE_SCRIPTS.map((script): CrashScript => ({
  name: script.name,
  variants: NODE_VARIANTS,
  sample: NODE_SAMPLE,
  begin: (start) => new NodeRun({ script, ...start }),
}));

export const SCRIPTS: readonly CrashScript[] = [...groups, ...nodes];

/** @throws RangeError for an unknown name */
export function scriptNamed(name: string): CrashScript {
  const script = SCRIPTS.find((candidate) => candidate.name === name);
  if (script === undefined) {
    throw new RangeError(`there is no script ${name}; known: ${SCRIPTS.map((one) => one.name).join(', ')}`);
  }
  return script;
}
