/**
 * The configurations of a group and the changes between them, as pure functions. Every change of voters goes
 * through a joint configuration (Raft paper, section 6), in which both the old and the new voters must agree.
 *
 * An entry of kind `config` holds the whole new configuration, not a difference. Applying one twice, or after a
 * snapshot that covers it, is therefore harmless.
 */
import { assert } from './assert.ts';
import type { GroupConfig, NodeId, SnapshotMeta } from './types.ts';

/** One step of a change. A node joins as a learner, is promoted when it has caught up, and leaves by removal. */
export interface MembershipStep {
  readonly kind: 'addLearner' | 'promote' | 'demote' | 'remove';
  readonly node: NodeId;
}

/** Steps that take effect together, at most one per node. An empty change only raises the epoch. */
export type MembershipChange = readonly MembershipStep[];

/**
 * The reason why a leader refused a change. Nothing has happened.
 *
 * - `notLeader`: ask the leader.
 * - `changePending`: the previous change is not complete, or this leader has not committed an entry of its own yet.
 * - `transferring`: the leader is handing over its leadership.
 * - `unknownNode`: a node to promote is no learner, a node to demote no voter, or a node to remove no member.
 * - `alreadyMember`: a node to add is a voter or learner already.
 * - `staleEpoch`: a newer version of the placement has changed the group already.
 * - `invalidChange`: no step and no newer epoch, two steps for one node, or an invalid node id or epoch.
 * - `learnerBehind`: a learner to promote lacks too much of the log, or does not answer.
 * - `wouldLoseQuorum`: too few of the remaining voters are reachable, or none would remain.
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

/** The configuration that a group starts with. */
export function simpleConfig(voters: readonly NodeId[]): GroupConfig {
  return { epoch: 0, voters, outgoing: [], learners: [] };
}

/** The configuration that a snapshot was taken under. */
export function configOfSnapshot(meta: SnapshotMeta): GroupConfig {
  const { epoch = 0, voters, outgoing = [], learners = [] } = meta;
  return { epoch, voters, outgoing, learners };
}

/** Whether a change of voters is under way, so that the old voters still count. */
export function isJoint(config: GroupConfig): boolean {
  return config.outgoing.length > 0;
}

/**
 * Whether `node` may campaign and counts in a quorum. A voter that is being demoted does until the change is
 * complete.
 */
export function isVoterOf(config: GroupConfig, node: NodeId): boolean {
  return config.voters.includes(node) || config.outgoing.includes(node);
}

/** All members, each once: voters, outgoing voters, learners. */
export function membersOf(config: GroupConfig): NodeId[] {
  return [...new Set([...config.voters, ...config.outgoing, ...config.learners])];
}

/** The members that count in a quorum, each once. */
export function votersOf(config: GroupConfig): NodeId[] {
  return [...new Set([...config.voters, ...config.outgoing])];
}

/** Describes what is wrong with `config`; undefined if it is valid. */
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
 * The configuration that follows from `change`, or the reason for a refusal. If voters change, the result is joint,
 * and `leaveJoint` of it completes the change. If only learners change, one entry is enough, because they decide
 * nothing.
 *
 * @param epoch the version of the placement that asks. One version may need several changes. An older version is
 * refused, so a leader that missed the newest placement cannot undo it. That is why even a placement that changes
 * nothing records its version, by a change without steps.
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
  assert(flaw === undefined, 'a valid change must lead to a valid configuration, but {}', flaw);
  return next;
}

/** The configuration that completes a joint one: the new voters decide alone. */
export function leaveJoint(config: GroupConfig): GroupConfig {
  assert(isJoint(config), 'only a joint configuration can be left');
  return { ...config, outgoing: [] };
}

/**
 * Whether the configuration `after` may directly follow `before`. Anything else in a log means that two changes
 * overlapped.
 */
export function isSuccessor(before: GroupConfig, after: GroupConfig): boolean {
  if (after.epoch < before.epoch) return false;
  if (isJoint(before)) return !isJoint(after) && sameNodes(before.voters, after.voters);
  // A replica that is joining has no configuration to compare with.
  if (before.voters.length === 0) return true;
  return isJoint(after) ? sameNodes(before.voters, after.outgoing) : sameNodes(before.voters, after.voters);
}

function isEpoch(epoch: number): boolean {
  return Number.isSafeInteger(epoch) && epoch >= 0;
}

function sameNodes(a: readonly NodeId[], b: readonly NodeId[]): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}

// Encoding of a `config` entry: the epoch, three counts (voters, outgoing, learners), then the ids, all
// little-endian f64.
const NUMBER_BYTES = 8;

/** Encodes a configuration as the data of a `config` entry: 8 bytes for each of 4 + (number of ids) numbers. */
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

/** Decodes the data of a `config` entry; undefined if it is malformed or not a valid configuration. */
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
