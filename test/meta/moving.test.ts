/** Groups that wait for a crashed new node do not delay groups whose new node is healthy. */
import { FIRST_RULES } from './first-rules.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import { changedConfig, leaveJoint, simpleConfig, type MembershipChange } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { GroupConfig, NodeId } from '../../raft/types.ts';
import type { ClusterPlacement } from '../../src/meta/cluster-placement.ts';
import { GroupMover } from '../../src/meta/group-mover.ts';
import type { MetaGroup } from '../../src/meta/meta-group.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { Offers } from '../../src/meta/offers.ts';

const GROUPS = 30;
const CHECK_TICKS = 10;
const VERSION = 2;
const LAST_INDEX = 1_000;
const [DEAD, HEALTHY] = [4, 5];

/** A driver that leads all groups. A live node receives everything before the next round. */
class Driver {
  readonly configs = new Map<number, GroupConfig>();
  readonly silent = new Set<NodeId>();
  /** By group: the number of entries that its learners lack. */
  readonly lacking = new Map<number, number>();
  steps: { readonly group: number; readonly change: MembershipChange }[] = [];

  constructor() {
    for (let group = 0; group <= GROUPS; group += 1) this.configs.set(group, simpleConfig([1, 2, 3]));
  }

  leads = (): boolean => true;
  isChanging = (): boolean => false;
  requestProposal = (): void => {};
  configOf = (group: number): GroupConfig | undefined => this.configs.get(group);
  isReachable = (_group: number, node: NodeId): boolean => !this.silent.has(node);

  status(group: number): { match: Map<NodeId, number>; lastIndex: number; applied: number } {
    const { learners } = this.configOf(group) ?? simpleConfig([]);
    const index = LAST_INDEX - (this.lacking.get(group) ?? 0);
    return { lastIndex: LAST_INDEX, applied: LAST_INDEX, match: new Map(learners.map((id) => [id, index])) };
  }

  changeMembership(group: number, change: MembershipChange, epoch: number): void {
    const config = this.configOf(group) ?? simpleConfig([]);
    const isBehind = (this.lacking.get(group) ?? 0) > 0;
    const promotes = (node: NodeId): boolean => isBehind || this.silent.has(node);
    if (change.some(({ kind, node }) => kind === 'promote' && promotes(node))) return;
    const next = changedConfig(config, change, epoch);
    if (typeof next === 'string') throw new Error(next);
    this.configs.set(group, next.outgoing.length > 0 ? leaveJoint(next) : next);
    this.steps.push({ group, change });
    if (change.some(({ kind }) => kind === 'addLearner')) this.lacking.set(group, LAST_INDEX);
  }

  /** All live learners have received every entry. */
  catchUp(): void {
    for (const [group, { learners }] of this.configs) {
      if (!learners.some((node) => this.silent.has(node))) this.lacking.set(group, 0);
    }
  }
}

describe('a leader of many groups', () => {
  let driver: Driver;
  let offers: Offers;
  let wanted: (group: number) => NodeId[];
  let mover: GroupMover;
  const connected = new Set<NodeId>();

  beforeEach(() => {
    driver = new Driver();
    offers = new Offers(() => true);
    connected.clear();
    for (const id of [1, 2, 3, HEALTHY]) connected.add(id);
    const state: Partial<MetaState> = { version: VERSION, settledVersion: 1, nodes: [], leaving: [] };
    mover = new GroupMover({
      raft: driver as unknown as MultiRaft,
      meta: { state, isLeader: false, leader: 9 } as unknown as MetaGroup,
      placement: {
        partitionCount: GROUPS,
        membersOf: (group: number) => ({ voters: wanted(group), learners: [] }),
      } as unknown as ClusterPlacement,
      offers,
      isConnected: (node) => connected.has(node),
      groups: () => driver.configs.keys(),
      report: () => {},
    });
    // The first groups are meant for the dead one; the next for both; the rest for the healthy one.
    wanted = (group) => {
      if (group === 0) return [1, 2, 3];
      if (group <= 12) return [1, 2, DEAD];
      return group <= 16 ? [1, DEAD, HEALTHY] : [1, 2, HEALTHY];
    };
  });

  function offer(node: NodeId, version = VERSION): void {
    const all = [...driver.configs.keys()].filter((group) => wanted(group).includes(node));
    offers.offered(node, version, all);
  }

  function runTicks(): void {
    for (let i = 0; i < CHECK_TICKS; i += 1) mover.tick();
  }

  const arrived = (): number[] =>
    [...driver.configs].flatMap(([group, { voters }]) => (voters.includes(HEALTHY) ? [group] : []));
  const entered = (): number =>
    driver.steps.filter(({ change }) => change.some(({ kind }) => kind === 'addLearner')).length;
  const meant = Array.from({ length: GROUPS - 16 }, (_, i) => 17 + i);

  it('moves groups with a live node, even if groups before them wait for a node that never came', () => {
    offer(HEALTHY);
    for (let i = 0; i < 12; i += 1) {
      runTicks();
      driver.catchUp();
    }
    expect(arrived()).toEqual(meant);
    // Groups that wait for both have one of them already, and will soon be done.
    expect(driver.configOf(13)).toMatchObject({ voters: [1, 2, 3], learners: [HEALTHY] });
    expect(driver.configOf(1)).toMatchObject({ voters: [1, 2, 3], learners: [] });
  });

  it('moves groups with a live node, even if another node died midway, and continues with that one when it is back', () => {
    offer(DEAD);
    connected.add(DEAD);
    runTicks();
    expect(driver.configOf(1)?.learners).toEqual([DEAD]);
    connected.delete(DEAD);
    offers.gone(DEAD);
    driver.silent.add(DEAD);
    offer(HEALTHY);
    for (let i = 0; i < 12; i += 1) {
      runTicks();
      driver.catchUp();
    }
    expect(arrived()).toEqual(meant);
    driver.silent.delete(DEAD);
    connected.add(DEAD);
    offer(DEAD);
    for (let i = 0; i < 12; i += 1) {
      runTicks();
      driver.catchUp();
    }
    for (const [group, { voters }] of driver.configs)
      expect(voters.toSorted((a, b) => a - b)).toEqual(wanted(group));
  });

  it('moves other groups if a node answers without making progress, and still waits for one that is only slow', () => {
    offer(DEAD);
    connected.add(DEAD);
    runTicks();
    offer(HEALTHY);
    const stuck = [...driver.configs.keys()].slice(1, 9);
    const patience = 300;
    for (let i = 0; i < patience; i += 1) {
      runTicks();
      for (const group of stuck.slice(1)) driver.lacking.set(group, LAST_INDEX - i);
    }
    expect(entered()).toBe(8);
    // The first of the eight has received nothing at all: only its slot may go to another group.
    runTicks();
    expect(entered()).toBe(9);
    for (let i = 0; i <= patience; i += 1) runTicks();
    expect(entered()).toBe(17);
  });

  it('lets only a few groups catch up at a time', () => {
    offer(HEALTHY);
    runTicks();
    runTicks();
    expect(entered()).toBe(8);
    driver.catchUp();
    runTicks();
    expect(driver.steps.filter(({ change }) => change.some(({ kind }) => kind === 'promote')).length).toBe(4);
  });

  it('adds no node that has not offered itself under this version or a newer one', () => {
    offer(HEALTHY, VERSION - 1);
    runTicks();
    expect(entered()).toBe(0);
    offer(HEALTHY, VERSION + 1);
    runTicks();
    expect(entered()).toBe(8);
  });

  it('forgets the offers of a node that is down, and those for groups that it does not lead', () => {
    offer(HEALTHY);
    expect(offers.versionOf(20, HEALTHY)).toBe(VERSION);
    offers.gone(HEALTHY);
    expect(offers.versionOf(20, HEALTHY)).toBe(0);
    const ofGroup1 = new Offers((group) => group === 1);
    ofGroup1.offered(HEALTHY, VERSION, [1, 2]);
    expect([ofGroup1.versionOf(1, HEALTHY), ofGroup1.versionOf(2, HEALTHY)]).toEqual([VERSION, 0]);
  });
});

function node(id: NodeId): MetaState['nodes'][number] {
  const peer = { host: 'h', port: 1_000 + id };
  return { id, http: { host: 'h', port: id }, peer, incarnation: `${id}` };
}

describe('a leader of group 0', () => {
  it('adds a leaving node that never heard from group 0, if that node can be reached', () => {
    const driver = new Driver();
    const [LEAVING, GONE] = [4, 5];
    const state: MetaState = {
      version: VERSION,
      settledVersion: 1,
      nodes: [1, 2, 3].map(node),
      settledNodes: [1, 2, 3, LEAVING, GONE],
      placement: '',
      settledPlacement: '',
      rules: FIRST_RULES,
      leaving: [LEAVING, GONE].map(node),
      retired: [LEAVING, GONE],
      clusterVersion: 1,
    };
    const settled: number[] = [];
    const mover = new GroupMover({
      raft: driver as unknown as MultiRaft,
      meta: { state, isLeader: false, leader: 9 } as unknown as MetaGroup,
      placement: {
        partitionCount: GROUPS,
        membersOf: () => ({ voters: [1, 2, 3], learners: [LEAVING, GONE] }),
      } as unknown as ClusterPlacement,
      offers: new Offers(() => true),
      isConnected: (id) => id !== GONE,
      groups: () => [0],
      report: (_to, _version, groups) => settled.push(...groups),
    });
    for (let i = 0; i < 3 * CHECK_TICKS; i += 1) mover.tick();
    expect(driver.configOf(0)?.learners).toEqual([LEAVING]);
    expect(driver.configOf(0)?.epoch).toBe(VERSION);
    expect(new Set(settled)).toEqual(new Set([0]));
  });
});
