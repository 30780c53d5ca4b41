/**
 * Scripts of one group that crash at each of their boundaries. They are short, since each boundary costs several runs.
 */
import type { AllowRequest } from '../../../src/api/request.ts';
import { Question } from './clients.ts';
import type { Cluster, Script } from './cluster.ts';
import { GROUP } from './settings.ts';
import { all, type Condition } from './steps.ts';

const NEVER_BYTES = 1 << 30;

function grant(cluster: Cluster, first: number, request: AllowRequest): Condition {
  const question = new Question(cluster, first, request, 'grant');
  return () => question.isDone;
}

function denial(cluster: Cluster, first: number, request: AllowRequest): Condition {
  const question = new Question(cluster, first, request, 'denial');
  return () => question.isDone;
}

/** Grants with and without costs, one by one and several at once, up to the limit; then one too many. */
const propose: Script = {
  name: 'propose',
  snapshotEveryBytes: NEVER_BYTES,
  countsLate: false,
  grants: 4,
  *steps(cluster) {
    yield grant(cluster, 1, { userId: 'ann', requestId: 'a' });
    yield all([
      grant(cluster, 2, { userId: 'ann', requestId: 'b', cost: 2 }),
      grant(cluster, 3, { userId: 'bob', requestId: 'c' }),
    ]);
    yield grant(cluster, 3, { userId: 'ann', requestId: 'd', cost: 3 });
    yield denial(cluster, 2, { userId: 'ann' });
  },
};

/** A follower is down while the others compact their logs, and comes back to a snapshot. */
const snapshot: Script = {
  name: 'snapshot',
  snapshotEveryBytes: 200,
  countsLate: true,
  grants: 6,
  *steps(cluster) {
    yield grant(cluster, 1, { userId: 'ann', requestId: 'a' });
    yield () => cluster.leader !== undefined && cluster.nodes.every(({ isUp }) => isUp || cluster.hasDead);
    const away = cluster.nodes.find((node) => node !== cluster.leader);
    if (away === undefined) return;
    cluster.countFromHere();
    const before = away.core?.raft.status(GROUP)?.lastIndex ?? 0;
    cluster.stop(away);
    for (const requestId of ['b', 'c', 'd', 'e']) {
      yield grant(cluster, 2, { userId: requestId, requestId });
    }
    yield () => {
      const logStart = cluster.leader?.core?.raft.status(GROUP)?.logStart ?? 0;
      return away.isUp || cluster.hasDead || logStart > before;
    };
    cluster.start(away);
    yield () => {
      const applied = away.core?.raft.status(GROUP)?.applied;
      return cluster.hasDead || applied === cluster.raft.committedIndex(GROUP);
    };
    yield grant(cluster, away.id, { userId: 'ann', requestId: 'f', cost: 5 });
    yield denial(cluster, away.id, { userId: 'ann' });
  },
};

/** The power fails. Nodes recover from snapshots and logs, and crash again during recovery. */
const recover: Script = {
  name: 'recover',
  snapshotEveryBytes: 200,
  countsLate: true,
  grants: 6,
  *steps(cluster) {
    for (const requestId of ['a', 'b', 'c', 'd', 'e']) {
      yield grant(cluster, 1, { userId: 'ann', requestId });
    }
    cluster.countFromHere();
    cluster.cutPower();
    yield grant(cluster, 3, { userId: 'ann', requestId: 'f' });
    yield denial(cluster, 1, { userId: 'ann' });
  },
};

export const GROUP_SCRIPTS: readonly Script[] = [propose, snapshot, recover];
