/** Scripts of one group whose every boundary is crashed at. They are short: each boundary costs several runs. */
import type { MembershipChange } from '../../../raft/membership.ts';
import type { GroupConfig, NodeId } from '../../../raft/types.ts';
import type { AllowRequest } from '../../../src/api/request.ts';
import { Change, Question } from './clients.ts';
import type { Cluster } from './cluster.ts';
import { GROUP } from './member-core.ts';
import { all, type Condition, type Steps } from './steps.ts';

export interface Script {
  readonly name: string;
  readonly nodes: number;
  /** Nodes 1 to this are the first voters; the others join. */
  readonly founders: number;
  readonly changesMembers: boolean;
  readonly snapshotEveryBytes: number;
  /** Its boundaries count from where it says so: another script begins with the same steps, and crashes there. */
  readonly countsLate: boolean;
  /** Grants in the log when all is done: each request id counts once. */
  readonly grants: number;
  /** What is done, and after each step what is waited for. */
  steps(cluster: Cluster): Steps;
}

const NEVER_BYTES = 1 << 30;
const CAMPAIGNS_MILLIS = 300;

function grant(cluster: Cluster, first: number, request: AllowRequest): Condition {
  const question = new Question(cluster, first, request, 'grant');
  return () => question.isDone;
}

function denial(cluster: Cluster, first: number, request: AllowRequest): Condition {
  const question = new Question(cluster, first, request, 'denial');
  return () => question.isDone;
}

function changed(
  cluster: Cluster,
  change: MembershipChange,
  isDoneIn: (config: GroupConfig) => boolean,
  epoch = 0,
): Condition {
  const asked = new Change(cluster, change, { epoch, isDoneIn });
  return () => asked.isDone;
}

/** Grants with and without costs, one by one and at once, up to the limit; then one too many. */
const propose: Script = {
  name: 'propose',
  nodes: 3,
  founders: 3,
  changesMembers: false,
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

/** A follower is away while the others compact their logs, and comes back to a snapshot. */
const snapshot: Script = {
  name: 'snapshot',
  nodes: 3,
  founders: 3,
  changesMembers: false,
  snapshotEveryBytes: 300,
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

/** The power fails. Nodes come back to snapshots and logs, and crash again on their way. */
const recover: Script = {
  name: 'recover',
  nodes: 3,
  founders: 3,
  changesMembers: false,
  snapshotEveryBytes: 300,
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

/** Node 4 joins, catches up, and takes the place of another voter in one joint change; that one is switched off. */
function replaces(name: string, leaving: number): Script {
  return {
    name,
    nodes: 4,
    founders: 3,
    changesMembers: true,
    snapshotEveryBytes: NEVER_BYTES,
    countsLate: true,
    grants: 3,
    *steps(cluster) {
      yield grant(cluster, 1, { userId: 'ann', requestId: 'a' });
      // Of several such scripts one is enough for this part.
      if (leaving === 3) cluster.countFromHere();
      yield changed(cluster, [{ kind: 'addLearner', node: 4 }], ({ learners }) => learners.includes(4));
      cluster.countFromHere();
      const during = grant(cluster, 2, { userId: 'ann', requestId: 'b', cost: 2 });
      const change: MembershipChange = [
        { kind: 'promote', node: 4 },
        { kind: 'remove', node: leaving },
      ];
      yield changed(
        cluster,
        change,
        ({ voters }) => voters.length === 3 && voters.includes(4) && !voters.includes(leaving),
      );
      cluster.switchOff(cluster.node(leaving));
      yield during;
      yield grant(cluster, 2, { userId: 'ann', requestId: 'c', cost: 3 });
      yield denial(cluster, 4, { userId: 'ann' });
    },
  };
}

/** Node 4 joins when the log of the others is compacted: it learns from a snapshot what the group is, and may vote. */
const join: Script = {
  name: 'join',
  nodes: 4,
  founders: 3,
  changesMembers: true,
  snapshotEveryBytes: 200,
  countsLate: true,
  grants: 5,
  *steps(cluster) {
    for (const requestId of ['a', 'b', 'c', 'd']) {
      yield grant(cluster, 1, { userId: 'ann', requestId });
    }
    yield () => (cluster.leader?.core?.raft.status(GROUP)?.logStart ?? 0) > 1;
    yield changed(cluster, [{ kind: 'addLearner', node: 4 }], ({ learners }) => learners.includes(4));
    cluster.countFromHere();
    yield changed(cluster, [{ kind: 'promote', node: 4 }], ({ voters }) => voters.includes(4));
    yield grant(cluster, 3, { userId: 'ann', requestId: 'e', cost: 2 });
    yield denial(cluster, 4, { userId: 'ann' });
  },
};

/** Of two voters none may stay away. */
function withAll(cluster: Cluster, condition: Condition): Condition {
  return () => {
    if (cluster.hasDead) cluster.revive();
    return condition();
  };
}

/** Whatever happens to the node: it comes back, and its replica is removed or brought back until that is on its disk. */
function replica(cluster: Cluster, id: NodeId, state: 'removed' | 'held', placement: number): Condition {
  return () => {
    const { core, isUp } = cluster.node(id);
    if (!isUp && cluster.hasDead) cluster.revive();
    const control = core?.replica;
    if (control === undefined) return false;
    if (state === 'removed') control.remove(placement);
    else control.comeBack(placement);
    return control.state === state;
  };
}

/** Node 4 takes the place of node 3, whose replica is removed; then node 3 is wanted again, in place of node 4. */
const leaveAndReturn: Script = {
  name: 'leave-and-return',
  nodes: 4,
  founders: 3,
  changesMembers: true,
  snapshotEveryBytes: 200,
  countsLate: true,
  grants: 5,
  *steps(cluster) {
    for (const requestId of ['a', 'b', 'c']) {
      yield grant(cluster, 1, { userId: 'ann', requestId });
    }
    yield changed(cluster, [{ kind: 'addLearner', node: 4 }], ({ learners }) => learners.includes(4), 1);
    yield changed(
      cluster,
      [
        { kind: 'promote', node: 4 },
        { kind: 'remove', node: 3 },
      ],
      ({ voters }) => voters.includes(4) && !voters.includes(3),
      1,
    );
    cluster.countFromHere();
    yield replica(cluster, 3, 'removed', 1);
    yield grant(cluster, 2, { userId: 'ann', requestId: 'd' });
    yield replica(cluster, 3, 'held', 2);
    yield changed(cluster, [{ kind: 'addLearner', node: 3 }], ({ learners }) => learners.includes(3), 2);
    yield () => {
      if (!cluster.node(3).isUp && cluster.hasDead) cluster.revive();
      const applied = cluster.node(3).core?.raft.status(GROUP)?.applied ?? 0;
      return applied >= cluster.raft.committedIndex(GROUP);
    };
    cluster.countNoFurther();
    yield changed(
      cluster,
      [
        { kind: 'promote', node: 3 },
        { kind: 'remove', node: 4 },
      ],
      ({ voters }) => voters.includes(3) && !voters.includes(4),
      2,
    );
    cluster.switchOff(cluster.node(4));
    yield grant(cluster, 3, { userId: 'ann', requestId: 'e', cost: 2 });
    yield denial(cluster, 3, { userId: 'ann' });
  },
};

/**
 * One of three sleeps while the group moves to another node, and wakes up when the replica of the second is back, and
 * empty: together they would be a majority of the first three.
 */
const sleeper: Script = {
  name: 'sleeper',
  nodes: 4,
  founders: 3,
  changesMembers: true,
  snapshotEveryBytes: NEVER_BYTES,
  countsLate: true,
  grants: 3,
  *steps(cluster) {
    yield grant(cluster, 1, { userId: 'ann', requestId: 'a' });
    yield () => cluster.leader !== undefined;
    const [second, asleep] = cluster.nodes.slice(0, 3).filter((node) => node !== cluster.leader);
    if (second === undefined || asleep === undefined) return;
    cluster.stop(asleep);
    yield changed(cluster, [{ kind: 'addLearner', node: 4 }], ({ learners }) => learners.includes(4), 1);
    yield changed(
      cluster,
      [
        { kind: 'promote', node: 4 },
        { kind: 'remove', node: second.id },
        { kind: 'remove', node: asleep.id },
      ],
      ({ voters }) => voters.includes(4) && voters.length === 2,
      1,
    );
    yield replica(cluster, second.id, 'removed', 1);
    yield grant(cluster, 4, { userId: 'ann', requestId: 'b' });
    yield replica(cluster, second.id, 'held', 2);
    cluster.start(asleep);
    // Long enough for a campaign or two.
    const campaignedAt = cluster.now + CAMPAIGNS_MILLIS;
    yield () => cluster.now >= campaignedAt;
    cluster.countFromHere();
    yield withAll(cluster, grant(cluster, second.id, { userId: 'ann', requestId: 'c' }));
    const { id } = second;
    const added = changed(
      cluster,
      [{ kind: 'addLearner', node: id }],
      ({ learners }) => learners.includes(id),
      2,
    );
    yield withAll(cluster, added);
    const promoted = changed(
      cluster,
      [{ kind: 'promote', node: id }],
      ({ voters }) => voters.includes(id),
      2,
    );
    yield withAll(cluster, promoted);
  },
};

export const GROUP_SCRIPTS: readonly Script[] = [
  propose,
  snapshot,
  recover,
  replaces('replace', 3),
  replaces('remove-leader', 1),
  join,
  leaveAndReturn,
  sleeper,
];
