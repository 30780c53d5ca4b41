/** Scripts of whole nodes: the members of a cluster change and its partitions move, while users continue to ask. */
import type { NodeId } from '../../../raft/types.ts';
import type { NodeChange } from '../../../src/api/cluster-change.ts';
import { addressOf } from '../settings.ts';
import type { NodeScript } from './node-run.ts';

/** Two or three entries. */
const SNAPSHOT_BYTES = 100;
const NEVER_BYTES = 1 << 30;

/** A membership change of one kind. Each boundary until the last change is finished is crashed at. */
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
      // Until the replicas that moved away are deleted.
      yield () => run.unfinished === undefined;
    },
  };
}

const newcomer = { add: addressOf(4) };

/** Enough for several campaigns to begin and fail or succeed. */
const CAMPAIGNS_MILLIS = 300;

/**
 * Node 3 is down while its partitions move to a new node, and others delete theirs. It wakes up when the new node
 * leaves and the others hold these partitions again, but empty. Together with one of them it would be a majority of the
 * members it knows.
 */
const oversleeps: NodeScript = {
  name: 'node-oversleeps',
  nodes: 3,
  spares: 1,
  members: [1, 2, 3],
  partitions: 3,
  replicas: 3,
  // A returning node gets the whole log again, with the same indexes as the deleted entries.
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
    // The leader must not send them what they have deleted.
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
  // The partitions that moved to the new node come back to nodes that have only tombstones of them.
  changes('node-comes-and-goes', { nodes: 3, spares: 1, members: [1, 2, 3] }, { remove: 4 }, [newcomer]),
  oversleeps,
];
