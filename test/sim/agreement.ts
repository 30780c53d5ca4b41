/**
 * The members of a simulated cluster, and whether its nodes agree on them and on their partitions, once there are no
 * faults.
 */
import { isQuorum, type JointVoters } from '../../raft/quorum.ts';
import type { NodeId } from '../../raft/types.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import { hasBusyNodes } from './loads.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

/** The members, including those that leave until all partitions have moved. */
export function livingMembers({ meta, nodes }: World): SimNode[] {
  const members = new Set([...(meta?.nodes ?? []), ...(meta?.leaving ?? [])].map(({ id }) => id));
  return nodes.filter(
    ({ id, state, isStranger }) =>
      state !== 'gone' && state !== 'absent' && !isStranger && (meta === undefined || members.has(id)),
  );
}

/** Nodes that were removed and still run, or that use the id of another node. */
export function outsiders({ meta, nodes }: World): SimNode[] {
  const left = meta?.retired.filter((id) => !meta.leaving.some((node) => node.id === id)) ?? [];
  return nodes.filter(
    ({ id, state, isStranger }) =>
      state !== 'gone' && state !== 'absent' && (isStranger || left.includes(id)),
  );
}

/** No member is lost for good. With a lost and unreplaced member, another one that restarts may be one too many. */
export function isWhole(world: World): boolean {
  return livingMembers(world).length >= (world.meta?.nodes ?? world.settings.config.nodes).length;
}

/** The first final condition that does not hold yet; undefined if all do. */
export function disagreement(world: World, members: readonly SimNode[]): string | undefined {
  return behind(world, members) ?? unaware(world) ?? unreleased(members) ?? ungathered(world, members);
}

/**
 * Where leaders gather, all members name the same node, which may lead, and it leads all of its partitions. With
 * several zones, or where no node holds everything, they gather nowhere. If a node was busy, they may have spread for a
 * while.
 */
function ungathered(world: World, members: readonly SimNode[]): string | undefined {
  const { settings, placement } = world;
  if (!settings.features.includes('gathering')) return undefined;
  const partitions = Array.from({ length: placement.partitionCount }, (_, partition) => partition);
  const places = members.filter(({ id }) =>
    partitions.every((one) => placement.replicasOf(one).includes(id)),
  );
  const zones = new Set(world.meta?.nodes.flatMap(({ zone }) => zone ?? []));
  const able = zones.size > 1 ? [] : places.filter(({ core }) => core?.raft.isWilling);
  const targets = new Set(members.map(({ core }) => core?.leading.gatheredOn ?? 0));
  const [target = 0] = targets;
  if (targets.size !== 1)
    return `members name different nodes for leaders to gather on: ${[...targets].join(', ')}`;
  if (target === 0)
    return able.length === 0 || hasBusyNodes(settings)
      ? undefined
      : 'leaders do not gather, though no node was busy';
  const found = able.find(({ id }) => id === target);
  if (found === undefined) return `leaders gather on node ${target}, which must not lead every partition`;
  const foreign = partitions.find((one) => found.core?.raft.status(groupOfPartition(one))?.role !== 'leader');
  return foreign === undefined
    ? undefined
    : `leaders gather on node ${target}, but partition ${foreign} is not led there`;
}

/** Reservations without a grant are refunded once all nodes are healthy. */
function unreleased(members: readonly SimNode[]): string | undefined {
  const found = members.find(({ core }) => (core?.requests.reservations.pendingCount ?? 0) > 0);
  return found === undefined
    ? undefined
    : `node ${found.id} has not given back the reservations that it made in vain`;
}

/**
 * Members hold exactly the partitions placed on them, completely. Exception: a node that waits for a replacement which
 * never comes keeps its copy.
 */
function behind({ placement, raft }: World, members: readonly SimNode[]): string | undefined {
  for (let partition = 0; partition < placement.partitionCount; partition += 1) {
    const group = groupOfPartition(partition);
    const placed = placement.replicasOf(partition);
    const mayEnd = placed.every((id) => members.some((node) => node.id === id));
    for (const node of members) {
      const status = node.core?.raft.status(group);
      if (!placed.includes(node.id)) {
        if (status !== undefined && mayEnd)
          return `node ${node.id} has not deleted its replica of group ${group}`;
        continue;
      }
      if (status?.applied !== raft.committedIndex(group))
        return `node ${node.id} has not caught up in group ${group}`;
    }
  }
  return undefined;
}

/** A node that is not a member knows it. */
function unaware(world: World): string | undefined {
  const found = outsiders(world).find((node) => !knowsItIsOut(node));
  return found === undefined
    ? undefined
    : `node ${found.id} does not know that it was removed: ${JSON.stringify(found.core?.membershipStatus)}`;
}

function knowsItIsOut({ core, isStranger }: SimNode): boolean {
  const state = core?.membershipStatus?.state;
  return state === 'removed' || (isStranger && state === 'refused');
}

/** For a violation: what each node knows and holds. */
export function stateOf({ meta, nodes, network, settings }: World): string {
  const lines = [`nodes: ${JSON.stringify(meta)}`];
  for (const node of nodes) {
    const cuts = nodes.filter((other) => other !== node && network.isCut(node.id, other.id));
    const deaf = nodes.filter((other) => other !== node && !network.isConnected(node.id, other.id));
    lines.push(
      `node ${node.id}: ${node.state}${node.isPaused ? ', paused' : ''}; cut to ${cuts.map(({ id }) => id).join(' ')}; ` +
        `not connected to ${deaf.map(({ id }) => id).join(' ')}; knows version ${node.core?.meta?.state?.version}`,
    );
    for (let group = 0; group <= settings.config.partitions; group += 1) {
      const status = node.core?.raft.status(group);
      if (status === undefined) continue;
      const { role, term, leader, logStart, applied, commit, lastIndex, match, config } = status;
      const { voters, outgoing, learners } = config;
      const matches = [...match].map(([peer, index]) => `${peer}:${index}`).join(' ');
      lines.push(
        `  group ${group}: ${role}, term ${term}, leader ${leader}, log ${logStart}..${lastIndex}, ` +
          `applied ${applied}, commit ${commit}, voters ${voters.join(' ')}, outgoing ${outgoing.join(' ')}, ` +
          `learners ${learners.join(' ')}${matches === '' ? '' : `, match ${matches}`}`,
      );
    }
  }
  return lines.join('\n');
}

/** Whether these nodes have a quorum of the group, all together and without each of those that are `apart`. */
export function hasQuorums(config: JointVoters, ids: readonly NodeId[], apart: readonly NodeId[]): boolean {
  const isQuorumWithout = (without?: NodeId): boolean =>
    isQuorum(config, (voter) => voter !== without && ids.includes(voter));
  return isQuorumWithout() && apart.every(isQuorumWithout);
}

/** One of them has a replica of the partition which has received its rules. */
export function haveRules(nodes: readonly SimNode[], partition: number): boolean {
  return nodes.some(({ core }) => core?.partitions.get(partition)?.ruleTable !== undefined);
}
