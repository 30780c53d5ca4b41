/**
 * The laws of Raft, checked while a run goes on: one leader per term, equal logs, nothing committed is ever lost, no
 * promise before it is on disk, equal states, and group time that never outruns real time.
 */
import { decodeConfig, isSuccessor, isVoterOf, simpleConfig } from '../../raft/membership.ts';
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, GroupConfig, GroupId, NodeId } from '../../raft/types.ts';
import { Partition } from '../../src/partition/partition.ts';
import { decodePeerMessages } from '../../src/wire/peer-messages.ts';
import { lastDecisions, takeDecisions } from './decision-watch.ts';
import { campaignConfigs, type CommittedConfig, decidersOf, isMajority } from './configs.ts';
import { digestOfItems } from './state-digest.ts';
import { DiskMirror, digestOf } from './mirror.ts';
import {
  type Committed,
  diskOf,
  entrySeen,
  type GroupHistory,
  holdsCommitted,
  isElected,
  isOnQuorum,
  newHistory,
  type Outcome,
  positionKey,
} from './group-history.ts';
import { GroupTime, type GroupTimeInit } from './group-time.ts';
import { decided, openProposalOf, proposed as wasProposed } from './open-proposals.ts';
import { chunksOf } from '../raft/driver/whole-snapshots.ts';
import { checkPromise, told } from './promises.ts';
import { check, type Story } from './story.ts';

export interface RaftCheckerInit extends GroupTimeInit {
  /** The voters that a group begins with. */
  readonly foundersOf: (group: GroupId) => readonly NodeId[];
  readonly story: Story;
  /** A node took office. */
  readonly led: (node: NodeId, group: GroupId) => void;
  /** A leader sends entries, which may be on its own way to its disk still. */
  readonly appended?: (node: NodeId, group: GroupId, entries: readonly Entry[]) => void;
  /** A node goes on from a snapshot. */
  readonly installed?: (node: NodeId, group: GroupId) => void;
  /** A new entry is committed, in log order. */
  readonly committed: (group: GroupId, committed: Committed) => void;
}

/** The disk of one node at some moment, by group. */
export type DiskCopy = ReadonlyMap<GroupId, DiskMirror>;

/** Hashing a state costs more than most steps. */
export const STATE_HASH_EVERY = 128;

export class RaftChecker {
  readonly #init: RaftCheckerInit;
  readonly #time: GroupTime;
  readonly #groups = new Map<GroupId, GroupHistory>();
  readonly #gone = new Set<NodeId>();
  /** Nodes with another database than the one that is recorded under their id: they may take no part. */
  readonly #strangers = new Set<NodeId>();

  constructor(init: RaftCheckerInit) {
    this.#init = init;
    this.#time = new GroupTime(init);
  }

  #group(id: GroupId): GroupHistory {
    let group = this.#groups.get(id);
    if (group === undefined) {
      group = newHistory(id, this.#init.foundersOf(id));
      this.#groups.set(id, group);
    }
    return group;
  }

  committedIndex(id: GroupId): number {
    return this.#group(id).committedIndex;
  }

  appliedIndex(id: GroupId, node: NodeId): number {
    return this.#group(id).applied.get(node) ?? 0;
  }

  /** The latest committed configuration. */
  configOf(id: GroupId): GroupConfig {
    return this.#group(id).configs.at(-1)?.config ?? simpleConfig([]);
  }

  /** All that are committed, oldest first. */
  configsOf(id: GroupId): readonly CommittedConfig[] {
    return this.#group(id).configs;
  }

  diskOf(id: GroupId, node: NodeId): DiskMirror {
    return diskOf(this.#group(id), node);
  }

  leaderOf(id: GroupId, term: number): NodeId | undefined {
    return this.#group(id).leaderOf.get(term);
  }

  /** Everything that is committed is on the disk of `node`, and applied there. */
  hasEverything(id: GroupId, node: NodeId): boolean {
    const group = this.#group(id);
    const { committedIndex } = group;
    const disk = diskOf(group, node);
    const term = group.log[committedIndex]?.entry.term ?? 0;
    const isStored = disk.lastIndex >= committedIndex && disk.holds(committedIndex, term);
    return isStored && (group.applied.get(node) ?? 0) === committedIndex;
  }

  entryAt(id: GroupId, index: number): Committed | undefined {
    return this.#group(id).log[index];
  }

  /** The directory of `node` is gone: it counts as one that never comes back. */
  lost(node: NodeId): void {
    this.#gone.add(node);
  }

  /** The process of `node` has ended. */
  ended(node: NodeId): void {
    for (const group of this.#groups.values()) {
      const disk = group.disks.get(node);
      if (disk?.isStaging === true) this.#init.story.fault('diedStaging', `(${disk.name})`);
      disk?.restarted();
    }
  }

  /** The directory of `node` is gone, and another one has its id. */
  madeAnew(node: NodeId): void {
    this.#gone.add(node);
    this.#strangers.add(node);
  }

  /** What the disk of `node` holds, so that it may be put back. */
  copyOf(node: NodeId): DiskCopy {
    const copy = new Map<GroupId, DiskMirror>();
    for (const [id, group] of this.#groups) {
      const disk = group.disks.get(node);
      if (disk !== undefined) copy.set(id, disk.copy());
    }
    return copy;
  }

  /**
   * Whether the disk of `node` may go back to `copy` without breaking a promise: no vote and no change of the members is
   * forgotten, and everything else that is forgotten is on a quorum besides this node. See raft/README.md, "A disk that forgot".
   */
  mayGoBack(node: NodeId, copy: DiskCopy): boolean {
    for (const [id, group] of this.#groups) {
      const disk = group.disks.get(node);
      const old = copy.get(id);
      if (disk === undefined) continue;
      if (old === undefined || old.term !== disk.term || old.vote !== disk.vote) return false;
      // It would act by a configuration that others have left, and there it might be a quorum's last member.
      if (old.commit < (group.configs.at(-1)?.index ?? 0)) return false;
      for (let index = old.baseIndex + 1; index <= disk.lastIndex; index += 1) {
        const term = disk.termAt(index) ?? group.log[index]?.entry.term;
        if (term === undefined) return false;
        if (index <= old.lastIndex && old.holds(index, term)) continue;
        const isElsewhere = isOnQuorum(group, (voter) => {
          const other = diskOf(group, voter);
          return (
            voter !== node && !this.#gone.has(voter) && index <= other.lastIndex && other.holds(index, term)
          );
        });
        if (!isElsewhere) return false;
      }
    }
    return true;
  }

  /** The disk of `node` is what it was when `copy` was made. */
  wentBack(node: NodeId, copy: DiskCopy): void {
    for (const [id, old] of copy) {
      const group = this.#group(id);
      const disk = diskOf(group, node);
      disk.become(old);
      this.#checkStillDurable(group, node, disk);
    }
  }

  /** A write of `node` is durable. */
  written(node: NodeId, writes: readonly GroupWrite[]): void {
    for (const write of writes) {
      if (this.#strangers.has(node)) {
        const isNothing = write.entries.length === 0 && write.install === undefined;
        check(isNothing, () => `node ${node} was made anew, and is sent the log of group ${write.group}`);
        continue;
      }
      const group = this.#group(write.group);
      const disk = diskOf(group, node);
      if (write.remove === true) this.#init.story.fault('replicaRemoved', `(node ${node}, ${write.group})`);
      else if (disk.isRemoved) this.#init.story.fault('replicaReturns', `(node ${node}, ${write.group})`);
      for (const entry of write.entries) entrySeen(group, entry, `node ${node}`);
      disk.apply(write);
      this.#checkStillDurable(group, node, disk);
      if (write.hardState !== undefined) this.#checkCommit(group, disk, write.hardState.commit);
    }
  }

  /** What a disk says is committed is committed: it has that very entry, and so has a quorum of disks. */
  #checkCommit(group: GroupHistory, disk: DiskMirror, commit: number): void {
    if (commit <= disk.baseIndex) return;
    const term = disk.termAt(commit);
    check(term !== undefined, () => `${disk.name} says that ${commit} is committed, and does not hold it`);
    const known = group.log[commit]?.entry.term;
    const isCommitted =
      known === undefined
        ? isOnQuorum(group, (voter) => diskOf(group, voter).holds(commit, term))
        : known === term;
    check(
      isCommitted,
      () => `${disk.name} says that entry ${commit} of term ${term} is committed, and it is not`,
    );
  }

  #checkStillDurable(group: GroupHistory, node: NodeId, disk: DiskMirror): void {
    const before = group.durable.get(node) ?? 0;
    let durable = before;
    while (durable > 0 && !holdsCommitted(group, disk, durable)) durable -= 1;
    // A replica that is behind in terms may lose a copy that nobody counted to a leader that is behind as well.
    for (let index = durable + 1; index <= before && !this.#gone.has(node); index += 1) {
      check(
        isOnQuorum(group, (voter) => holdsCommitted(group, diskOf(group, voter), index)),
        () => `durability: ${disk.name} forgot entry ${index}, and it is on a quorum no more`,
      );
    }
    while (durable < group.committedIndex) {
      const next = group.log[durable + 1]?.entry.term;
      if (next === undefined || !disk.holds(durable + 1, next)) break;
      durable += 1;
    }
    group.durable.set(node, durable);
  }

  /** Listens to a replica from the outside. */
  observe(node: NodeId, id: GroupId, partition: GroupApplication, applied: number): void {
    if (this.#strangers.has(node)) {
      partition.apply = () => check(false, () => `node ${node} was made anew, and takes part in group ${id}`);
      return;
    }
    const group = this.#group(id);
    group.applied.set(node, applied);
    const apply = partition.apply.bind(partition);
    partition.apply = (entry) => {
      const before = group.applied.get(node) ?? 0;
      check(
        entry.index === before + 1,
        () => `node ${node} applies ${entry.index} after ${before} in group ${id}`,
      );
      group.applied.set(node, entry.index);
      this.#applies(group, id, node, entry);
      takeDecisions();
      apply(entry);
      const decisions = takeDecisions();
      if (partition instanceof Partition) {
        this.#checkOutcome(group, id, node, partition, entry.index, decisions);
      }
      if (entry.index % STATE_HASH_EVERY === 0) this.#checkState(group, id, node, partition, entry.index);
    };
    const restore = partition.restore.bind(partition);
    partition.restore = (meta) => {
      const { index } = meta;
      const target = restore(meta);
      const install = (): void => {
        const before = group.applied.get(node) ?? 0;
        check(index > before, () => `node ${node} restores ${index} over ${before} in group ${id}`);
        group.applied.set(node, index);
        target.install();
        this.#time.installed(group, partition.clock, meta);
        this.#init.installed?.(node, id);
        if (partition instanceof Partition) this.#checkSize(group, id, node, partition, index);
        this.#checkState(group, id, node, partition, index);
      };
      return { add: (chunk) => target.add(chunk), complete: () => target.complete(), install };
    };
    const proposed = partition.proposed.bind(partition);
    partition.proposed = (entry) => {
      if (entry !== undefined) {
        entrySeen(group, entry, `leader ${node}`);
        group.stampedAt.set(positionKey(entry), this.#init.now());
        wasProposed(group, entry);
      }
      proposed(entry);
    };
    const statusChanged = partition.statusChanged.bind(partition);
    partition.statusChanged = (status) => {
      if (status.isLeader) this.#leads(group, id, node, status.term);
      statusChanged(status);
    };
    if (partition instanceof Partition) {
      const snapshot = partition.snapshot.bind(partition);
      partition.snapshot = () => {
        this.#checkState(group, id, node, partition, group.applied.get(node) ?? 0);
        return snapshot();
      };
    }
    if (applied === 0) return;
    if (partition instanceof Partition) this.#checkSize(group, id, node, partition, applied);
    this.#checkState(group, id, node, partition, applied);
  }

  #checkOutcome(
    group: GroupHistory,
    id: GroupId,
    node: NodeId,
    partition: Partition,
    index: number,
    decisions: number,
  ): void {
    check(
      group.outcomes[index]?.decisions === decisions,
      () => `node ${node} decides otherwise in entry ${index} of group ${id}: ${lastDecisions()}`,
    );
    this.#checkSize(group, id, node, partition, index);
  }

  #checkSize(group: GroupHistory, id: GroupId, node: NodeId, partition: Partition, index: number): void {
    const size = partition.stateBytes;
    check(
      group.outcomes[index]?.size === size,
      () => `the state of node ${node}, group ${id} has another size at ${index}`,
    );
  }

  #checkState(group: GroupHistory, id: GroupId, node: NodeId, app: GroupApplication, index: number): void {
    const hash = app instanceof Partition ? app.stateHash() : String(chunksOf(app.snapshot()));
    const known = group.stateHashes.get(index);
    if (known === undefined) group.stateHashes.set(index, hash);
    else check(known === hash, () => `the state of node ${node}, group ${id} differs at ${index}`);
    if (!(app instanceof Partition) || index === 0) return;
    check(
      group.outcomes[index]?.digest === digestOfItems(app.inspect()),
      () =>
        `the state of node ${node}, group ${id} is not what the log says at ${index}: ${JSON.stringify([...app.inspect()])}`,
    );
  }

  /** The naive limiter is the first to apply an entry. */
  expectOutcome(id: GroupId, index: number, outcome: Outcome): void {
    this.#group(id).outcomes[index] = outcome;
  }

  #leads(group: GroupHistory, id: GroupId, node: NodeId, term: number): void {
    const known = group.leaderOf.get(term);
    check(
      known === undefined || known === node,
      () => `election safety: ${known} and ${node} lead group ${id} in term ${term}`,
    );
    if (known === node) return;
    group.leaderOf.set(term, node);
    this.#init.led(node, id);
    const { committedIndex } = group;
    const last = group.log[committedIndex];
    const disk = diskOf(group, node);
    check(
      (disk.term > term || (disk.term === term && disk.vote === node)) &&
        isElected(group, { term, candidate: node }),
      () => `node ${node} leads group ${id} in term ${term} without a majority of votes on disk`,
    );
    if (last === undefined || last.entry.term > term) return;
    check(
      disk.holds(committedIndex, last.entry.term),
      () => `leader completeness: node ${node} leads group ${id} in term ${term} without ${committedIndex}`,
    );
  }

  #applies(group: GroupHistory, id: GroupId, node: NodeId, entry: Entry): void {
    const digest = digestOf(entry);
    const known = group.log[entry.index];
    if (known !== undefined) {
      check(
        known.digest === digest,
        () => `state-machine safety: node ${node} applies another entry ${entry.index} in group ${id}`,
      );
      return;
    }
    check(
      entry.index === group.committedIndex + 1,
      () => `node ${node} commits ${entry.index} after ${group.committedIndex} in group ${id}`,
    );
    const stampedAt = group.stampedAt.get(positionKey(entry));
    const gainedMillis = this.#time.gained(group, entry, stampedAt);
    const committed = { entry, digest, stampedAt, gainedMillis };
    group.log.push(committed);
    group.committedIndex = entry.index;
    decided(group, entry.index);
    this.#checkQuorum(group, id, entry);
    this.#checkElectable(group, id, entry);
    this.#checkOpening(group, id, entry);
    this.#time.committed(group, committed);
    if (entry.kind === 'config') this.#configured(group, entry);
    this.#init.committed(id, committed);
  }

  #configured(group: GroupHistory, { index, term, data }: Entry): void {
    const config = decodeConfig(data);
    check(config !== undefined, () => `entry ${index} of group ${group.id} holds no sound configuration`);
    const before = this.configOf(group.id);
    check(
      isSuccessor(before, config),
      () => `membership: entry ${index} of group ${group.id} does not follow the configuration before it`,
    );
    group.configs.push({ index, term, config });
  }

  /** The ledger: at this moment a quorum of disks has it. That a quorum keeps it is checked at every later write. */
  #checkQuorum(group: GroupHistory, id: GroupId, entry: Entry): void {
    const holders = new Set<NodeId>();
    for (const [replica, disk] of group.disks) {
      if (!disk.holds(entry.index, entry.term) || disk.lastIndex < entry.index) continue;
      holders.add(replica);
      if (group.durable.get(replica) === entry.index - 1) group.durable.set(replica, entry.index);
    }
    check(
      decidersOf(group.configs, entry.index).some((config) =>
        isMajority(config, (node) => holders.has(node)),
      ),
      () =>
        `durability: entry ${entry.index} of group ${id} is committed and only on disks ${[...holders].join(' ')}`,
    );
  }

  /**
   * Being on a quorum of disks is not enough (Raft paper, figure 8): nobody without the entry may be able to win an
   * election, now or ever. A leader that counts copies of earlier terms' entries breaks this long before it shows.
   * Nor may a change of the configuration let anybody win, by whichever of the two a candidate goes.
   */
  #checkElectable(group: GroupHistory, id: GroupId, entry: Entry): void {
    for (const [node, candidate] of group.disks) {
      if (candidate.lastIndex >= entry.index && candidate.holds(entry.index, entry.term)) continue;
      if (!candidate.takesPart) continue;
      const votes = (voter: NodeId): boolean => {
        const disk = diskOf(group, voter);
        return disk.takesPart && disk.wouldElect(candidate);
      };
      for (const config of campaignConfigs(group.configs, candidate)) {
        if (!isVoterOf(config, node)) continue;
        check(
          !isMajority(config, votes),
          () =>
            `entry ${entry.index} of group ${id} is committed, and ${candidate.name} could win without it`,
        );
      }
    }
  }

  /** A new leader commits a no-op before anything else. */
  #checkOpening(group: GroupHistory, id: GroupId, entry: Entry): void {
    const before = group.log[entry.index - 1]?.entry.term ?? 0;
    if (entry.term === before) return;
    check(entry.kind === 'noop', () => `term ${entry.term} of group ${id} does not begin with a no-op`);
  }

  /** Of all groups the most. */
  get gainedMillis(): number {
    return Math.max(0, ...[...this.#groups.values()].map(({ gainedMillis }) => gainedMillis));
  }

  /** A client was told that its request, the only one under this id, reached no log and never will. */
  nowhere(id: GroupId, requestId: string): void {
    const entry = openProposalOf(this.#group(id), requestId, this.#gone);
    check(
      entry === undefined,
      () => `request ${requestId} was said to be nowhere, and entry ${entry?.index} may still be committed`,
    );
  }

  /** Nothing a node says may promise more than its disk holds. */
  sending(node: NodeId, to: NodeId, payload: Uint8Array): void {
    if (this.#strangers.has(node)) return;
    for (const sent of decodePeerMessages(payload, node, to)) {
      this.#init.story.tell(() => `${node} > ${to}: ${told(sent)}`);
      if (sent.kind !== 'message') continue;
      const { message } = sent;
      checkPromise(this.#group(sent.group), node, message);
      if (message.type === 'append') this.#init.appended?.(node, sent.group, message.entries);
    }
  }
}
