/**
 * Checks the members of groups and their changes by the committed log alone, however a node got its configuration:
 *
 * - A replica uses the configuration that the log has at its applied index, including learners and epoch, also after a
 *   snapshot or a restart.
 * - A promoted node has the entry by which it joined on its disk.
 * - No change needs a majority that the leader has not heard for long.
 * - A joining node has its offer for this version of the nodes on disk, so that it does not forget the replica.
 * - A version is settled when every group has its members, as a result of this version.
 * - The id of a node that left is never used again.
 */
import { decodeConfig, membersOf } from '../../raft/membership.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, GroupConfig, GroupId, NodeId } from '../../raft/types.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { type CommittedConfig, isMajority } from './configs.ts';
import type { DiskMirror } from './mirror.ts';
import type { SimNetwork } from './network.ts';
import { bestSharing, type Labelled, sharingOf } from '../partition/all-placements.ts';
import { PlacementChecker } from './placement-checker.ts';
import { areLabelled } from './spread-checker.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export interface MembersCheckerInit {
  readonly settings: Settings;
  readonly nodes: () => readonly SimNode[];
  readonly network: SimNetwork;
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
  readonly configsOf: (group: GroupId) => readonly CommittedConfig[];
  readonly diskOf: (group: GroupId, node: NodeId) => DiskMirror;
  readonly leaderOf: (group: GroupId, term: number) => NodeId | undefined;
}

const CHECK_MILLIS = 100;
/** By then a leader has noticed which nodes it does not hear, and its earlier decisions have been sent. */
const SILENT_ELECTIONS = 4;
const LEFT_MILLIS = 10_000;

export class MembersChecker {
  readonly #init: MembersCheckerInit;
  readonly #placements: PlacementChecker;
  readonly #inTouchAt = new Map<string, number>();
  /** Changes that a leader has in its log, by group and index. */
  readonly #seen = new Set<string>();
  #peeks = 0;
  #settledVersion = 0;
  readonly #retired = new Set<NodeId>();

  constructor(init: MembersCheckerInit) {
    this.#init = init;
    this.#placements = new PlacementChecker(init.settings.config);
    this.#checkLater();
  }

  #checkLater(): void {
    this.#init.after(CHECK_MILLIS, () => {
      this.#peeks += 1;
      this.#checkPaths();
      for (const node of this.#init.nodes()) this.#compare(node);
      this.#checkLater();
    });
  }

  #checkPaths(): void {
    const { nodes, network, now } = this.#init;
    const running = nodes().filter(({ isRunning }) => isRunning);
    for (const a of running) {
      for (const b of running) {
        if (a === b || network.isCut(b.id, a.id) || !network.isConnected(b.id, a.id)) continue;
        this.#inTouchAt.set(`${a.id} ${b.id}`, now());
      }
    }
  }

  /** One of its groups at a time. */
  #compare(node: SimNode): void {
    const { settings, configsOf } = this.#init;
    if (!node.isRunning || node.isStranger) return;
    const group = this.#peeks % (settings.config.partitions + 1);
    if (group === META_GROUP) this.#placements.compare(node);
    const status = node.core?.raft.status(group);
    if (status === undefined) return;
    const expected = configsOf(group).findLast(({ index }) => index <= status.applied);
    // A node that joins later does not know the founders, and takes no part before it reaches a configuration in the
    // log.
    if (expected === undefined || (expected.index === 0 && status.config.voters.length === 0)) return;
    check(
      wordsOf(status.config) === wordsOf(expected.config),
      () =>
        `node ${node.id} uses ${wordsOf(status.config)} in group ${group} at ${status.applied}, ` +
        `but the log says ${wordsOf(expected.config)}`,
    );
  }

  /** The write of `node` is on its disk. */
  written(node: NodeId, writes: readonly GroupWrite[]): void {
    for (const { group, entries } of writes) this.appended(node, group, entries);
  }

  /** `node` has these entries in its log. */
  appended(node: NodeId, group: GroupId, entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.kind !== 'config' || this.#init.leaderOf(group, entry.term) !== node) continue;
      const key = `${group} ${entry.index} ${entry.term}`;
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      this.#proposed(node, group, entry);
    }
  }

  #proposed(leader: NodeId, group: GroupId, { index, data }: Entry): void {
    const { configsOf, diskOf } = this.#init;
    const config = decodeConfig(data);
    const before = configsOf(group).findLast((known) => known.index < index)?.config;
    if (config === undefined || before === undefined) return;
    const had = [...before.voters, ...before.outgoing];
    const where = `entry ${index} of group ${group}`;
    for (const node of config.voters.filter((voter) => !had.includes(voter))) {
      if (this.#isDoubtful(node)) continue;
      const since = this.#memberSince(group, node, index);
      const { lastIndex } = diskOf(group, node);
      check(
        lastIndex >= since,
        () => `${where} makes node ${node} a voter, which has entry ${lastIndex} but not ${since} on disk`,
      );
    }
    const known = [...had, ...before.learners];
    for (const node of config.learners.filter((learner) => !known.includes(learner))) {
      if (group === META_GROUP || this.#isDoubtful(node)) continue;
      const { placement } = diskOf(group, node);
      check(
        placement >= config.epoch,
        () =>
          `${where} adds node ${node} for version ${config.epoch}, but its disk says version ${placement}`,
      );
    }
    if (config.outgoing.length > 0) this.#checkReachable(leader, config, where);
  }

  #checkReachable(leader: NodeId, config: GroupConfig, where: string): void {
    const { settings, now, nodes } = this.#init;
    const longMillis = SILENT_ELECTIONS * settings.timing.electionMillis + LEFT_MILLIS;
    const found = nodes().find(({ id }) => id === leader);
    // It may continue with its earlier knowledge.
    if (found === undefined || found.isPaused || found.pausedAt > now() - 2 * longMillis) return;
    const isReachable = (node: NodeId): boolean =>
      node === leader || (this.#inTouchAt.get(`${leader} ${node}`) ?? -Infinity) >= now() - longMillis;
    check(
      isMajority(config, isReachable),
      () => `${where} needs a majority of ${wordsOf(config)}, which node ${leader} has not heard for long`,
    );
  }

  #isDoubtful(node: NodeId): boolean {
    const found = this.#init.nodes().find(({ id }) => id === node);
    return found === undefined || found.isDoubtful || found.isStranger;
  }

  /** The index of the configuration since which it is a member. A voter that became a learner stayed one. */
  #memberSince(group: GroupId, node: NodeId, before: number): number {
    let since: number | undefined;
    for (const { index, config } of this.#init.configsOf(group)) {
      if (index >= before) break;
      // Founders are members since 0.
      since = membersOf(config).includes(node) ? (since ?? index) : undefined;
    }
    return since ?? 0;
  }

  /** The members of the cluster have changed, or all partitions have settled; this is committed. */
  metaChanged(state: MetaState): void {
    this.#placements.metaChanged(state);
    const { version, settledVersion, nodes, retired } = state;
    for (const { id } of nodes)
      check(!this.#retired.has(id), () => `node ${id} joins under the id of a removed node`);
    for (const id of retired) this.#retired.add(id);
    if (settledVersion === this.#settledVersion || settledVersion !== version) return;
    this.#settledVersion = settledVersion;
    // The first version is settled: nothing ever moved.
    if (version > 1) this.#checkSettled(version, nodes);
  }

  #checkSettled(version: number, nodes: readonly Labelled[]): void {
    const { settings, configsOf } = this.#init;
    for (let group = 0; group <= settings.config.partitions; group += 1) {
      const config = configsOf(group).at(-1)?.config;
      const isThere =
        config !== undefined &&
        config.epoch === version &&
        config.outgoing.length === 0 &&
        (group === META_GROUP
          ? mayBeVotersOfMeta(config.voters, nodes)
          : sorted(config.voters) === sorted(this.#placements.replicasOf(version, group - 1)));
      check(
        isThere,
        () =>
          `version ${version} is settled, but group ${group} has ${config === undefined ? 'no members' : wordsOf(config)}`,
      );
    }
  }
}

/** Those with the lowest ids: five at most, and an odd number. With labels, any that share as little as possible. */
function mayBeVotersOfMeta(voters: readonly NodeId[], nodes: readonly Labelled[]): boolean {
  const count = Math.min(5, nodes.length - ((nodes.length + 1) % 2));
  if (areLabelled(nodes))
    return voters.length === count && String(sharingOf(voters, nodes)) === String(bestSharing(nodes, count));
  const lowest = nodes.map(({ id }) => id).toSorted((a, b) => a - b);
  return sorted(voters) === sorted(lowest.slice(0, count));
}

function sorted(nodes: readonly NodeId[]): string {
  return nodes.toSorted((a, b) => a - b).join(' ');
}

function wordsOf({ voters, outgoing, learners, epoch }: GroupConfig): string {
  return `voters ${sorted(voters)}, outgoing ${sorted(outgoing)}, learners ${sorted(learners)}, epoch ${epoch}`;
}
