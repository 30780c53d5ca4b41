/**
 * Observes one replica from outside: it applies every entry once and in order, decides as the log does, and its state
 * follows from the log, however the replica got it.
 */
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { Entry, NodeId, SnapshotMeta } from '../../raft/types.ts';
import { Partition } from '../../src/partition/partition.ts';
import { chunksOf } from '../raft/driver/whole-snapshots.ts';
import { lastDecisions, takeDecisions } from './decision-watch.ts';
import { entrySeen, type GroupHistory } from './group-history.ts';
import { proposed as wasProposed } from './open-proposals.ts';
import { digestOfItems } from './state-digest.ts';
import { check } from './story.ts';

/** Hashing a state costs more than most steps. */
const STATE_HASH_EVERY = 128;

export interface Watched {
  readonly group: GroupHistory;
  readonly node: NodeId;
  /** The index that its disk state covers. */
  readonly applied: number;
  /** The next entry, before the replica sees it. */
  readonly applies: (entry: Entry) => void;
  /** It continues from a snapshot. */
  readonly installed: (meta: SnapshotMeta) => void;
  /** A leader appends this to its log. */
  readonly proposed: (entry: Entry) => void;
  readonly leads: (term: number) => void;
}

export function watchReplica(app: GroupApplication, watched: Watched): void {
  const { group, node, applied } = watched;
  group.applied.set(node, applied);
  watchApply(app, watched);
  watchRestore(app, watched);
  const proposed = app.proposed.bind(app);
  app.proposed = (entry) => {
    if (entry !== undefined) {
      entrySeen(group, entry, `leader ${node}`);
      watched.proposed(entry);
      wasProposed(group, entry);
    }
    proposed(entry);
  };
  const statusChanged = app.statusChanged.bind(app);
  app.statusChanged = (status) => {
    if (status.isLeader) watched.leads(status.term);
    statusChanged(status);
  };
  if (app instanceof Partition) {
    const snapshot = app.snapshot.bind(app);
    app.snapshot = () => {
      checkState(app, watched, group.applied.get(node) ?? 0);
      return snapshot();
    };
  }
  if (applied === 0) return;
  if (app instanceof Partition) checkSize(app, watched, applied);
  checkState(app, watched, applied);
}

function watchApply(app: GroupApplication, watched: Watched): void {
  const { group, node } = watched;
  const apply = app.apply.bind(app);
  app.apply = (entry) => {
    const { index } = entry;
    const before = group.applied.get(node) ?? 0;
    check(index === before + 1, () => `node ${node} applies ${index} after ${before} in group ${group.id}`);
    group.applied.set(node, index);
    watched.applies(entry);
    takeDecisions();
    apply(entry);
    const decisions = takeDecisions();
    if (app instanceof Partition) {
      check(
        group.outcomes[index]?.decisions === decisions,
        () => `node ${node} decides otherwise in entry ${index} of group ${group.id}: ${lastDecisions()}`,
      );
      checkSize(app, watched, index);
    }
    if (index % STATE_HASH_EVERY === 0) checkState(app, watched, index);
  };
}

function watchRestore(app: GroupApplication, watched: Watched): void {
  const { group, node } = watched;
  const restore = app.restore.bind(app);
  app.restore = (meta) => {
    const { index } = meta;
    const target = restore(meta);
    const install = (): void => {
      const before = group.applied.get(node) ?? 0;
      check(index > before, () => `node ${node} restores ${index} over ${before} in group ${group.id}`);
      group.applied.set(node, index);
      target.install();
      watched.installed(meta);
      if (app instanceof Partition) checkSize(app, watched, index);
      checkState(app, watched, index);
    };
    return { add: (chunk) => target.add(chunk), complete: () => target.complete(), install };
  };
}

function checkSize(app: Partition, { group, node }: Watched, index: number): void {
  const size = app.stateBytes;
  check(
    group.outcomes[index]?.size === size,
    () => `the state of node ${node}, group ${group.id} has another size at ${index}`,
  );
}

function checkState(app: GroupApplication, { group, node }: Watched, index: number): void {
  const hash = app instanceof Partition ? app.stateHash() : String(chunksOf(app.snapshot()));
  const known = group.stateHashes.get(index);
  if (known === undefined) group.stateHashes.set(index, hash);
  else check(known === hash, () => `the state of node ${node}, group ${group.id} differs at ${index}`);
  if (!(app instanceof Partition) || index === 0) return;
  check(
    group.outcomes[index]?.digest === digestOfItems(app.inspect()),
    () =>
      `the state of node ${node}, group ${group.id} is not what the log says at ${index}: ${JSON.stringify([...app.inspect()])}`,
  );
}
