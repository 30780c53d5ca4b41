/**
 * The laws of Raft, checked during a run: one leader per term, equal logs, nothing committed is ever lost, no promise
 * before it is on disk, equal states, and group time that never runs ahead of real time.
 */
import { decodeConfig, isSuccessor, simpleConfig } from '../../raft/membership.ts';
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, GroupConfig, GroupId, NodeId } from '../../raft/types.ts';
import { decodePeerMessages } from '../../src/wire/peer-messages.ts';
import { type CommittedConfig } from './configs.ts';
import { DiskMirror, digestOf } from './mirror.ts';
import {
  type Committed,
  diskOf,
  entrySeen,
  type GroupHistory,
  isElected,
  newHistory,
  type Outcome,
  positionKey,
} from './group-history.ts';
import { copyOf, type DiskCopy, mayGoBack } from './disk-copies.ts';
import { checkClaimed, checkElectable, checkQuorum, checkStillDurable } from './durability.ts';
import { watchReplica } from './replica-watch.ts';
import { GroupTime, type GroupTimeInit } from './group-time.ts';
import { decided, openProposalOf } from './open-proposals.ts';
import { checkPromise, reported } from './promises.ts';
import { check, type Story } from './story.ts';

export interface RaftCheckerInit extends GroupTimeInit {
  /** The voters that a group begins with. */
  readonly foundersOf: (group: GroupId) => readonly NodeId[];
  readonly story: Story;
  /** A node became leader. */
  readonly led: (node: NodeId, group: GroupId) => void;
  /** A leader sends entries, which may not be on its own disk yet. */
  readonly appended?: (node: NodeId, group: GroupId, entries: readonly Entry[]) => void;
  /** A node sends this, whether or not it arrives. */
  readonly sent?: (node: NodeId, to: NodeId, message: PeerMessage) => void;
  /** A node continues from a snapshot. */
  readonly installed?: (node: NodeId, group: GroupId) => void;
  /** A new entry is committed, in log order. */
  readonly committed: (group: GroupId, committed: Committed) => void;
}

export class RaftChecker {
  readonly #init: RaftCheckerInit;
  readonly #time: GroupTime;
  readonly #groups = new Map<GroupId, GroupHistory>();
  readonly #gone = new Set<NodeId>();
  /** Nodes with another database than the one recorded under their id: they may not take part. */
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

  /** The directory of `node` is gone: it counts as a node that never comes back. */
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

  /** A copy of the disk of `node`, so that it may be put back. */
  copyOf(node: NodeId): DiskCopy {
    return copyOf(this.#groups, node);
  }

  /** Whether the disk of `node` may go back to `copy` without breaking a promise. */
  mayGoBack(node: NodeId, copy: DiskCopy): boolean {
    return mayGoBack(this.#groups, { node, copy, gone: this.#gone });
  }

  /** The disk of `node` is what it was when `copy` was made. */
  wentBack(node: NodeId, copy: DiskCopy): void {
    for (const [id, old] of copy) {
      const group = this.#group(id);
      const disk = diskOf(group, node);
      disk.become(old);
      checkStillDurable(group, node, this.#gone);
    }
  }

  /** A write of `node` is durable. */
  written(node: NodeId, writes: readonly GroupWrite[]): void {
    for (const write of writes) {
      if (this.#strangers.has(node)) {
        const isNothing = write.entries.length === 0 && write.install === undefined;
        check(
          isNothing,
          () => `node ${node} has a new database, but is sent the log of group ${write.group}`,
        );
        continue;
      }
      const group = this.#group(write.group);
      const disk = diskOf(group, node);
      if (write.remove === true) this.#init.story.fault('replicaRemoved', `(node ${node}, ${write.group})`);
      else if (disk.isRemoved) this.#init.story.fault('replicaReturns', `(node ${node}, ${write.group})`);
      for (const entry of write.entries) entrySeen(group, entry, `node ${node}`);
      disk.apply(write);
      checkStillDurable(group, node, this.#gone);
      if (write.hardState !== undefined) checkClaimed(group, disk, write.hardState.commit);
    }
  }

  /** Observes a replica from outside. */
  observe(node: NodeId, id: GroupId, app: GroupApplication, applied: number): void {
    if (this.#strangers.has(node)) {
      app.apply = () => check(false, () => `node ${node} has a new database, but takes part in group ${id}`);
      return;
    }
    const group = this.#group(id);
    watchReplica(app, {
      group,
      node,
      applied,
      applies: (entry) => this.#applies(group, node, entry),
      installed: (meta) => {
        this.#time.installed(group, app.clock, meta);
        this.#init.installed?.(node, id);
      },
      proposed: (entry) => group.stampedAt.set(positionKey(entry), this.#init.now()),
      leads: (term) => this.#leads(group, node, term),
    });
  }

  /** The naive limiter is the first to apply an entry. */
  expectOutcome(id: GroupId, index: number, outcome: Outcome): void {
    this.#group(id).outcomes[index] = outcome;
  }

  #leads(group: GroupHistory, node: NodeId, term: number): void {
    const known = group.leaderOf.get(term);
    check(
      known === undefined || known === node,
      () => `election safety: ${known} and ${node} lead group ${group.id} in term ${term}`,
    );
    if (known === node) return;
    group.leaderOf.set(term, node);
    this.#init.led(node, group.id);
    const { committedIndex } = group;
    const last = group.log[committedIndex];
    const disk = diskOf(group, node);
    check(
      (disk.term > term || (disk.term === term && disk.vote === node)) &&
        isElected(group, { term, candidate: node }),
      () => `node ${node} leads group ${group.id} in term ${term} without a majority of votes on disk`,
    );
    if (last === undefined || last.entry.term > term) return;
    check(
      disk.holds(committedIndex, last.entry.term),
      () =>
        `leader completeness: node ${node} leads group ${group.id} in term ${term} without ${committedIndex}`,
    );
  }

  #applies(group: GroupHistory, node: NodeId, entry: Entry): void {
    const digest = digestOf(entry);
    const known = group.log[entry.index];
    if (known !== undefined) {
      check(
        known.digest === digest,
        () => `state-machine safety: node ${node} applies another entry ${entry.index} in group ${group.id}`,
      );
      return;
    }
    check(
      entry.index === group.committedIndex + 1,
      () => `node ${node} commits ${entry.index} after ${group.committedIndex} in group ${group.id}`,
    );
    const stampedAt = group.stampedAt.get(positionKey(entry));
    const gainedMillis = this.#time.gained(group, entry, stampedAt);
    const committed = { entry, digest, stampedAt, gainedMillis };
    group.log.push(committed);
    group.committedIndex = entry.index;
    decided(group, entry.index);
    checkQuorum(group, entry);
    checkElectable(group, entry);
    this.#checkOpening(group, entry);
    this.#time.committed(group, committed);
    if (entry.kind === 'config') this.#configured(group, entry);
    this.#init.committed(group.id, committed);
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

  /** A new leader commits a no-op before anything else. */
  #checkOpening(group: GroupHistory, entry: Entry): void {
    const before = group.log[entry.index - 1]?.entry.term ?? 0;
    if (entry.term === before) return;
    check(entry.kind === 'noop', () => `term ${entry.term} of group ${group.id} does not begin with a no-op`);
  }

  /** The maximum of all groups. */
  get gainedMillis(): number {
    return Math.max(0, ...[...this.#groups.values()].map(({ gainedMillis }) => gainedMillis));
  }

  /** A client got the answer that its request, the only one under this id, was not proposed. */
  nowhere(id: GroupId, requestId: string): void {
    const entry = openProposalOf(this.#group(id), requestId, this.#gone);
    check(
      entry === undefined,
      () => `request ${requestId} was reported as nowhere, but entry ${entry?.index} may still be committed`,
    );
  }

  /** No message of a node may promise more than its disk holds. */
  sending(node: NodeId, to: NodeId, payload: Uint8Array): void {
    if (this.#strangers.has(node)) return;
    for (const sent of decodePeerMessages(payload, node, to)) {
      this.#init.story.report(() => `${node} > ${to}: ${reported(sent)}`);
      this.#init.sent?.(node, to, sent);
      if (sent.kind !== 'message') continue;
      const { message } = sent;
      checkPromise(this.#group(sent.group), node, message);
      if (message.type === 'append') this.#init.appended?.(node, sent.group, message.entries);
    }
  }
}
