/**
 * Who belongs to a group, and which changes of that are sound: pure algebra, no state. Every change of voters goes
 * through a joint configuration (Raft paper, section 6), in which both the old and the new voters must agree.
 *
 * An entry of kind `config` holds the whole configuration that follows, not a difference: applying one twice, or
 * after a snapshot that covers it, cannot go wrong.
 */
import { assert } from './assert.ts';
import type { GroupConfig, NodeId, SnapshotMeta } from './types.ts';

/** A node enters as a learner, is promoted once it has caught up, and leaves by removal. */
export interface MembershipStep {
  readonly kind: 'addLearner' | 'promote' | 'demote' | 'remove';
  readonly node: NodeId;
}

/** Steps that take effect together; at most one per node. Without any, only the epoch changes. */
export type MembershipChange = readonly MembershipStep[];

/**
 * Why nothing was changed:
 * - `notLeader`: ask the leader.
 * - `changePending`: the change before is not complete, or this leader has not committed an entry of its own yet.
 * - `transferring`: leadership is being handed over.
 * - `unknownNode`: a node to promote, demote or remove does not belong to the group that way.
 * - `alreadyMember`: a node to add is a voter or learner already.
 * - `staleEpoch`: a newer version of the placement than the one asking has changed the group already.
 * - `invalidChange`: no step and no newer epoch, two steps for one node, or something that is no node id or no epoch.
 * - `learnerBehind`: a learner to promote lacks too much of the log, or is silent.
 * - `wouldLoseQuorum`: too few of the voters that would remain are reachable, or none would remain.
 */
export type MembershipRefusal =
  | 'notLeader'
  | 'changePending'
  | 'transferring'
  | 'staleEpoch'
  | 'unknownNode'
  | 'alreadyMember'
  | 'invalidChange'
  | 'learnerBehind'
  | 'wouldLoseQuorum';

export function simpleConfig(voters: readonly NodeId[]): GroupConfig {
  return { epoch: 0, voters, outgoing: [], learners: [] };
}

export function configOfSnapshot(meta: SnapshotMeta): GroupConfig {
  const { epoch = 0, voters, outgoing = [], learners = [] } = meta;
  return { epoch, voters, outgoing, learners };
}

/** A change of voters is under way: the old voters still count. */
export function isJoint(config: GroupConfig): boolean {
  return config.outgoing.length > 0;
}

/** May campaign, and counts in a quorum. A voter that is being demoted does until the change is complete. */
export function isVoterOf(config: GroupConfig, node: NodeId): boolean {
  return config.voters.includes(node) || config.outgoing.includes(node);
}

/** Voters, old and new, then learners; each once. */
export function membersOf(config: GroupConfig): NodeId[] {
  return [...new Set([...config.voters, ...config.outgoing, ...config.learners])];
}

/** The members that count, each once. */
export function votersOf(config: GroupConfig): NodeId[] {
  return [...new Set([...config.voters, ...config.outgoing])];
}

/** What makes `config` unsound, or undefined if it is sound. */
export function flawOf(config: GroupConfig): string | undefined {
  const { epoch, voters, outgoing, learners } = config;
  if (!isEpoch(epoch)) return `${epoch} is no version of a placement`;
  for (const ids of [voters, outgoing, learners]) {
    if (new Set(ids).size !== ids.length) return `a node appears twice in ${ids.join(', ')}`;
    if (!ids.every((id) => Number.isSafeInteger(id) && id >= 1))
      return `${ids.join(', ')} are not all node ids`;
  }
  if (voters.length === 0) return 'there is no voter';
  const both = learners.find((id) => voters.includes(id));
  // A learner may be among the outgoing voters: it is being demoted, and still counts there.
  return both === undefined ? undefined : `node ${both} is a voter and a learner`;
}

/**
 * The configuration that the next entry must hold for `change` to happen. If voters change it is joint, and
 * `leaveJoint` of it completes the change; learners alone come and go in one entry, for they decide nothing.
 *
 * `epoch` is the version of the placement that asks. One version may need several changes; an older one is refused, so
 * that a leader which has not heard of the newest placement cannot move the group back. Hence a newer version that wants
 * nothing to change says so in the log, by a change without steps.
 */
export function changedConfig(
  config: GroupConfig,
  change: MembershipChange,
  epoch: number,
): GroupConfig | MembershipRefusal {
  if (isJoint(config)) return 'changePending';
  if (!isEpoch(epoch)) return 'invalidChange';
  if (epoch < config.epoch) return 'staleEpoch';
  if (change.length === 0 && epoch === config.epoch) return 'invalidChange';
  if (new Set(change.map(({ node }) => node)).size !== change.length) return 'invalidChange';
  const voters = new Set(config.voters);
  const learners = new Set(config.learners);
  for (const { kind, node } of change) {
    if (!Number.isSafeInteger(node) || node < 1) return 'invalidChange';
    switch (kind) {
      case 'addLearner':
        if (voters.has(node) || learners.has(node)) return 'alreadyMember';
        learners.add(node);
        break;
      case 'promote':
        if (!learners.delete(node)) return 'unknownNode';
        voters.add(node);
        break;
      case 'demote':
        if (!voters.delete(node)) return 'unknownNode';
        learners.add(node);
        break;
      case 'remove':
        if (!voters.delete(node) && !learners.delete(node)) return 'unknownNode';
        break;
    }
  }
  if (voters.size === 0) return 'wouldLoseQuorum';
  const votersChange = voters.size !== config.voters.length || config.voters.some((id) => !voters.has(id));
  const next = {
    epoch,
    voters: [...voters],
    outgoing: votersChange ? config.voters : [],
    learners: [...learners],
  };
  const flaw = flawOf(next);
  assert(flaw === undefined, 'a sound change leads to a sound configuration, not one where {}', flaw);
  return next;
}

/** Completes a change: from now on the new voters decide alone. */
export function leaveJoint(config: GroupConfig): GroupConfig {
  assert(isJoint(config), 'only a joint configuration is left');
  return { ...config, outgoing: [] };
}

/** May the entry of `after` follow the one of `before`? Anything else in a log means that two changes overlapped. */
export function isSuccessor(before: GroupConfig, after: GroupConfig): boolean {
  if (after.epoch < before.epoch) return false;
  if (isJoint(before)) return !isJoint(after) && sameNodes(before.voters, after.voters);
  // A replica that only joins has no configuration to compare with.
  if (before.voters.length === 0) return true;
  return isJoint(after) ? sameNodes(before.voters, after.outgoing) : sameNodes(before.voters, after.voters);
}

function isEpoch(epoch: number): boolean {
  return Number.isSafeInteger(epoch) && epoch >= 0;
}

function sameNodes(a: readonly NodeId[], b: readonly NodeId[]): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}

// Data of a `config` entry: the epoch, the three counts, then the ids, all as little-endian f64.
const NUMBER_BYTES = 8;

export function encodeConfig(config: GroupConfig): Uint8Array {
  const { epoch, voters, outgoing, learners } = config;
  const numbers = [
    epoch,
    voters.length,
    outgoing.length,
    learners.length,
    ...voters,
    ...outgoing,
    ...learners,
  ];
  const data = new Uint8Array(numbers.length * NUMBER_BYTES);
  const view = new DataView(data.buffer);
  for (const [i, value] of numbers.entries()) view.setFloat64(i * NUMBER_BYTES, value, true);
  return data;
}

/** The configuration in the data of a `config` entry, or undefined if it holds no sound one. */
export function decodeConfig(data: Uint8Array): GroupConfig | undefined {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const count = data.byteLength / NUMBER_BYTES;
  if (!Number.isInteger(count) || count < 4) return undefined;
  const numbers = Array.from({ length: count }, (_, i) => view.getFloat64(i * NUMBER_BYTES, true));
  const [epoch = -1, voterCount = -1, outgoingCount = -1, learnerCount = -1, ...ids] = numbers;
  if (
    ![voterCount, outgoingCount, learnerCount].every((value) => Number.isSafeInteger(value) && value >= 0)
  ) {
    return undefined;
  }
  if (voterCount + outgoingCount + learnerCount !== ids.length) return undefined;
  const config = {
    epoch,
    voters: ids.slice(0, voterCount),
    outgoing: ids.slice(voterCount, voterCount + outgoingCount),
    learners: ids.slice(voterCount + outgoingCount),
  };
  return flawOf(config) === undefined ? config : undefined;
}
