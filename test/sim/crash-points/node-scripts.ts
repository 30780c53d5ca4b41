/** Scripts of whole nodes: the nodes of a cluster change, and its partitions move, while users go on asking. */
import type { NodeId } from '../../../raft/types.ts';
import type { NodeChange } from '../../../src/api/cluster-change.ts';
import { addressOf } from '../settings.ts';
import type { NodeScript } from './node-run.ts';

/** Two or three entries. */
const SNAPSHOT_BYTES = 100;
const NEVER_BYTES = 1 << 30;

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

/** Campaigns begin, and fail or succeed, several times. */
const CAMPAIGNS_MILLIS = 300;

/**
 * Node 3 sleeps while its partitions move to a newcomer, and others forget theirs. It wakes up when the newcomer leaves and
 * they hold again what they held, and nothing in it: with one of them it would be a majority of those it knows.
 */
const oversleeps: NodeScript = {
  name: 'node-oversleeps',
  nodes: 3,
  spares: 1,
  members: [1, 2, 3],
  partitions: 3,
  replicas: 3,
  // Whoever comes back gets all of the log again, under the indexes of what was deleted.
  snapshotEveryBytes: NEVER_BYTES,
  *steps(run) {
    const awake = [1, 2];
    yield run.grantEverywhere('a', 1);
    const held = run.replicasOn(awake);
    run.stop(3);
    yield* run.change(newcomer);
    yield () => run.isSettled && run.replicasOn(awake) < held;
    yield run.grantEverywhere('b', 1);
    yield* run.change({ remove: 4 });
    yield () => run.replicasOn(awake) === held;
    run.countFromHere();
    // Whoever leads does not tell them what they have forgotten.
    const isOver = run.part([1, 2, 4], CAMPAIGNS_MILLIS);
    run.start(3);
    yield isOver;
    yield run.grantEverywhere('c', 1);
    yield () => run.unfinished === undefined;
  },
};

export const NODE_SCRIPTS: readonly NodeScript[] = [
  changes('node-joins', { nodes: 3, spares: 1, members: [1, 2, 3, 4] }, newcomer),
  changes('node-leaves', { nodes: 4, spares: 0, members: [2, 3, 4] }, { remove: 1 }),
  changes('node-is-replaced', { nodes: 3, spares: 1, members: [1, 3, 4] }, { ...newcomer, remove: 2 }),
  // What had moved to the newcomer comes back to where nothing but a tombstone is.
  changes('node-comes-and-goes', { nodes: 3, spares: 1, members: [1, 2, 3] }, { remove: 4 }, [newcomer]),
  oversleeps,
];
