/**
 * Random histories of groups that mostly rest: an event, then nothing for up to three election timeouts. The network
 * partitions, loses, delays and repeats; nodes crash, pause, and have clocks of their own.
 */
import { assert } from '../../../raft/assert.ts';
import type { RandomBelow } from '../../../raft/core-state.ts';
import type { GroupId, NodeId } from '../../../raft/types.ts';
import type { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { ELECTION_TICKS, GROUP, TICK_MILLIS } from './options.ts';
import type { Parcel } from './parcel.ts';

/** No clock gains or loses a larger part of real time. */
export const DRIFT_MAX = 0.02;
/** Readings are whole milliseconds. */
const ROUNDING_MILLIS = 2;
const ORIGIN_MILLIS_MAX = 1_000_000_000;

export class IdleHistory {
  readonly #cluster: Cluster;
  readonly #random: RandomBelow;
  readonly #rates = new Map<NodeId, number>();
  readonly #paused = new Set<NodeId>();
  readonly #reluctant = new Set<NodeId>();
  /** Messages that arrive at paused nodes. */
  #held: Parcel[] = [];
  /** Copies of messages that arrive long after the first. */
  readonly #late: Parcel[] = [];
  readonly #lossPercent: number;
  readonly #latePercent: number;
  #isCut: (parcel: Parcel) => boolean = () => false;
  /** By group: real time when it was first checked, and by how much group time was ahead then. */
  readonly #origins = new Map<GroupId, { readonly now: number; readonly aheadMillis: number }>();
  /** By node, group and term: ticks of a leader since there is one of a higher term. */
  readonly #deposedTicks = new Map<string, number>();
  #commands = 0;

  constructor(cluster: Cluster, random: RandomBelow) {
    this.#cluster = cluster;
    this.#random = random;
    this.#lossPercent = random(2) * random(10);
    this.#latePercent = random(2) * random(10);
    for (const node of cluster.up) this.#rates.set(node.id, (random(2_001) - 1_000) * (DRIFT_MAX / 1_000));
    cluster.passes = (parcel) => this.#passes(parcel);
  }

  async run(steps: number): Promise<void> {
    for (let i = 0; i < steps; i += 1) {
      await this.#act();
      await this.tick(1 + this.#random(this.#random(2) === 0 ? 3 : 3 * ELECTION_TICKS));
    }
  }

  /** All faults end. */
  async end(): Promise<void> {
    this.#isCut = () => false;
    this.#late.length = 0;
    for (const id of this.#paused) this.#resume(id);
    for (const node of this.#cluster.nodes.values()) if (!node.isUp) this.#start(node);
    for (const node of this.#cluster.up) node.raft.avoidLeading('lowDisk', false);
    this.#cluster.passes = () => true;
    await this.#cluster.settle();
  }

  async tick(count: number): Promise<void> {
    const cluster = this.#cluster;
    for (let i = 0; i < count; i += 1) {
      cluster.now += TICK_MILLIS;
      for (const node of cluster.nodes.values()) {
        node.clockAheadMillis += TICK_MILLIS * (this.#rates.get(node.id) ?? 0);
        if (node.isUp && !this.#paused.has(node.id)) node.raft.tick();
      }
      const [parcel] = this.#late.splice(this.#random(this.#late.length + 20), 1);
      if (parcel !== undefined && this.#runs(parcel.to))
        cluster.node(parcel.to).raft.receive([parcel.message]);
      await cluster.settle();
      this.#check();
    }
  }

  #runs(id: NodeId): boolean {
    return this.#cluster.node(id).isUp && !this.#paused.has(id);
  }

  #passes(parcel: Parcel): boolean {
    if (this.#isCut(parcel) || this.#random(100) < this.#lossPercent) return false;
    if (this.#random(100) < this.#latePercent) this.#late.push(parcel);
    if (!this.#paused.has(parcel.to)) return true;
    this.#held.push(parcel);
    return false;
  }

  async #act(): Promise<void> {
    const cluster = this.#cluster;
    const random = this.#random;
    const ids = [...cluster.nodes.keys()];
    const id = ids[random(ids.length)] ?? 1;
    const node = cluster.node(id);
    const group = cluster.groups[random(cluster.groups.length)] ?? GROUP;
    const leader = cluster.leaderOf(group);
    switch (random(14)) {
      case 0:
        if (node.isUp) this.#crash(node);
        return;
      case 1:
      case 2:
        if (!node.isUp) this.#start(node);
        return;
      case 3:
        if (node.isUp) this.#paused.add(id);
        return;
      case 4:
      case 5:
        for (const paused of this.#paused) this.#resume(paused);
        return;
      case 6:
        this.#isCut = ({ from, to }) => (from === id) !== (to === id);
        return;
      case 7:
        this.#isCut = random(2) === 0 ? ({ from }) => from === id : ({ to }) => to === id;
        return;
      case 8:
        // Only beats pass, or only other messages.
        this.#isCut = this.#cutByKind(id, random(2) === 0);
        return;
      case 9:
        for (const each of cluster.up) if (each !== node && random(2) === 0) each.raft.peerLost(id);
        return;
      case 10:
        if (leader !== undefined && this.#runs(leader.id)) this.#change(leader, id);
        return;
      case 11:
        this.#toggleReluctance(node);
        return;
      case 12:
        if (leader !== undefined) for (let i = random(30); i >= 0; i -= 1) await this.#propose(leader, group);
        return;
      default:
        this.#isCut = () => false;
    }
  }

  #cutByKind(id: NodeId, cutsBeats: boolean): (parcel: Parcel) => boolean {
    return ({ from, to, message }) => {
      const isBeat = message.kind === 'beat' || message.kind === 'beatAnswer';
      return (from === id || to === id) && isBeat === cutsBeats;
    };
  }

  /** A node crashes, and the others notice it or not. */
  #crash(node: Node): void {
    node.crash(this.#random(2) === 0 ? 'lost' : 'kept');
    this.#paused.delete(node.id);
    this.#reluctant.delete(node.id);
    this.#held = this.#held.filter(({ to }) => to !== node.id);
    if (this.#random(2) === 0) for (const other of this.#cluster.up) other.raft.peerLost(node.id);
    if (this.#random(2) === 0) this.#start(node);
  }

  /** The clock of the next process begins at a random time. */
  #start(node: Node): void {
    node.clockAheadMillis = this.#random(ORIGIN_MILLIS_MAX) - ORIGIN_MILLIS_MAX / 2;
    node.start();
  }

  /** Messages that came meanwhile are read at once. */
  #resume(id: NodeId): void {
    this.#paused.delete(id);
    const [read, held] = [this.#held.filter(({ to }) => to === id), this.#held.filter(({ to }) => to !== id)];
    this.#held = held;
    this.#cluster.node(id).raft.receive(read.map(({ message }) => message));
  }

  #toggleReluctance(node: Node): void {
    if (!this.#runs(node.id)) return;
    const isReluctant = this.#reluctant.delete(node.id);
    if (!isReluctant) this.#reluctant.add(node.id);
    node.raft.avoidLeading('lowDisk', !isReluctant);
  }

  #change(leader: Node, id: NodeId): void {
    if (!leader.leads(GROUP)) return;
    const { voters } = leader.status.config;
    this.#cluster.change(leader, [{ kind: voters.includes(id) ? 'demote' : 'promote', node: id }]);
  }

  async #propose(leader: Node, group: GroupId): Promise<void> {
    if (!this.#runs(leader.id)) return;
    this.#commands += 1;
    leader.propose(`${this.#commands}${'x'.repeat(40)}`, group);
    await this.#cluster.settle();
  }

  #check(): void {
    for (const group of this.#cluster.groups) {
      const newest = this.#cluster.leaderOf(group);
      for (const node of this.#cluster.up) {
        if (!node.leads(group) || newest === undefined) continue;
        this.#checkTime(node, group);
        if (!this.#paused.has(node.id)) this.#checkLeadership(node, newest, group);
      }
    }
  }

  /** Group time never gains more on real time than the fastest clock. */
  #checkTime(node: Node, group: GroupId): void {
    const { now } = this.#cluster;
    const aheadMillis = node.appOf(group).clock.nowMillis() - now;
    const origin = this.#origins.get(group) ?? { now, aheadMillis };
    this.#origins.set(group, origin);
    const gainedMillis = aheadMillis - origin.aheadMillis;
    const gainedMillisMax = DRIFT_MAX * (now - origin.now) + ROUNDING_MILLIS;
    assert(
      gainedMillis <= gainedMillisMax,
      `time of group ${group} gained ${gainedMillis} ms, more than ${gainedMillisMax}`,
    );
  }

  /** A deposed leader steps down after two of its own election timeouts at the latest, unless late answers reach it. */
  #checkLeadership(node: Node, newest: Node, group: GroupId): void {
    if (this.#latePercent > 0 || newest === node) return;
    const key = `${node.id}/${group}/${node.statusOf(group).term}`;
    const ticks = (this.#deposedTicks.get(key) ?? 0) + 1;
    this.#deposedTicks.set(key, ticks);
    assert(
      ticks <= 2 * ELECTION_TICKS + 1,
      `node ${node.id} was deposed in group ${group} ${ticks} ticks ago`,
    );
  }
}
