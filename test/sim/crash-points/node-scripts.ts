/** Scripts of whole nodes: the nodes of a cluster change, and its partitions move, while users go on asking. */
import type { NodeId } from '../../../raft/types.ts';
import type { NodeChange } from '../../../src/api/node-change.ts';
import { addressOf } from '../settings.ts';
import type { NodeRun } from './node-run.ts';
import type { Scene } from './settings.ts';
import type { Steps } from './steps.ts';

export interface NodeScript extends Scene {
  readonly name: string;
  /** Who belongs to the cluster when all is done. */
  readonly members: readonly NodeId[];
  /** What is done, and after each step what is waited for. */
  steps(run: NodeRun): Steps;
}

/** Two or three entries. */
const SNAPSHOT_BYTES = 100;

/** The nodes change, one way or another; each boundary until the last change is finished is one to crash at. */
function changes(
  name: string,
  asked: { readonly nodes: number; readonly spares: number; readonly members: readonly NodeId[] },
  last: NodeChange,
  before: readonly NodeChange[] = [],
): NodeScript {
  return {
    name,
    ...asked,
    partitions: 3,
    replicas: 3,
    snapshotEveryBytes: SNAPSHOT_BYTES,
    *steps(run) {
      yield run.grantEverywhere('a', 1);
      yield run.grantEverywhere('b', 1);
      yield () => run.isCompacted;
      for (const change of before) {
        yield* run.change(change);
        yield () => run.unfinished === undefined;
      }
      run.countFromHere();
      yield* run.change(last);
      yield run.grantEverywhere('c', 1);
      // Until replicas that moved away are deleted.
      yield () => run.unfinished === undefined;
    },
  };
}

const newcomer = { add: addressOf(4) };

export const NODE_SCRIPTS: readonly NodeScript[] = [
  changes('node-joins', { nodes: 3, spares: 1, members: [1, 2, 3, 4] }, newcomer),
  changes('node-leaves', { nodes: 4, spares: 0, members: [2, 3, 4] }, { remove: 1 }),
  changes('node-is-replaced', { nodes: 3, spares: 1, members: [1, 3, 4] }, { ...newcomer, remove: 2 }),
  // What had moved to the newcomer comes back to where nothing but a tombstone is.
  changes('node-comes-and-goes', { nodes: 3, spares: 1, members: [1, 2, 3] }, { remove: 4 }, [newcomer]),
];
