/**
 * Changes the members of the cluster while it runs and during faults: adds, removes and replaces nodes, repeats each
 * change until it is accepted, and switches a removed node off once all partitions have moved.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ChangeResult, NodeChange } from '../../src/api/cluster-change.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import type { Random } from './random.ts';
import { drawLabelChange, drawLabels } from './draw-labels.ts';
import { addressOf, type LabelSettings, type Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check, type Story } from './story.ts';

export interface OperatorWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly nodes: readonly SimNode[];
  readonly after: (delayMillis: number, run: () => void) => void;
  /** The committed list of nodes. */
  readonly meta: () => MetaState | undefined;
}

/** After this long without an answer the operator asks again: the node may have died. */
const ANSWER_MILLIS_MAX = 2_000;
const AGAIN_MILLIS = 200;
/** Chance that the next change does not wait until the partitions have moved for the one before. */
const HURRY = 0.15;
/** Chance that an added node does not come for long: another one may be added meanwhile. */
const LATE = 0.2;
/** Chance that it never comes, and has to be removed. */
const NEVER = 0.4;
/** Chance that its disk is slow at first, by how much, and for how long. */
const SLOW = 0.2;
const SLOW_FACTOR = 50;
const SLOW_MILLIS = 3_000;
/** Chance that before a change the operator asks for a removed node back. */
const ASK_BACK = 0.2;
/** Chance of a label change instead of a change of members. */
const LABEL = 0.5;

export class Operator {
  readonly #world: OperatorWorld;
  readonly #random: Random;
  #isActive = true;
  #wanted: NodeChange | undefined;
  #asks = 0;
  readonly #dismissed = new Set<NodeId>();
  #settledVersion = 0;

  constructor(world: OperatorWorld) {
    this.#world = world;
    this.#random = world.random.fork();
    if (world.settings.changeMeanMillis > 0) this.#next();
  }

  /** Every requested change is accepted. */
  get isIdle(): boolean {
    return this.#wanted === undefined;
  }

  /** Begins nothing new. Current changes continue. */
  stop(): void {
    this.#isActive = false;
  }

  #next(): void {
    this.#world.after(this.#random.exponential(this.#world.settings.changeMeanMillis), () => {
      if (!this.#isActive) return;
      this.begin();
      this.#next();
    });
  }

  /** The operator asks for a removed node back: it has forgotten its promises, and is refused. */
  #askBack(id: NodeId): void {
    const up = this.#world.nodes.filter((node) => node.isRunning);
    if (up.length === 0) return;
    this.#world.story.fault('askBack', `(node ${id})`);
    this.#random.pick(up).changeNodes({ add: addressOf(id) }, (result) => {
      check(!result.ok, () => `node ${id} was removed, but is accepted again`);
    });
  }

  /** Asked once. Whether it worked is known when it is committed. */
  #label({ nodes }: MetaState, labels: LabelSettings): void {
    const up = this.#world.nodes.filter((node) => node.isRunning);
    if (up.length === 0) return;
    const change = drawLabelChange(this.#random, this.#random.pick(nodes).id, labels);
    this.#world.story.fault('label', JSON.stringify(change));
    this.#random.pick(up).inProcess((core) => core.change({ type: 'label', change }, () => undefined));
  }

  /** A change of members, unless one is under way. */
  begin(): void {
    const state = this.#world.meta();
    if (state === undefined || this.#wanted !== undefined) return;
    if (state.settledVersion !== state.version && !this.#random.chance(HURRY)) return;
    if (state.retired.length > 0 && this.#random.chance(ASK_BACK))
      this.#askBack(this.#random.pick(state.retired));
    const { labels } = this.#world.settings;
    if (labels !== undefined && this.#random.chance(LABEL)) return this.#label(state, labels);
    const change = this.#draw(state);
    if (change === undefined) return;
    const kind =
      change.add === undefined ? 'removeNode' : change.remove === undefined ? 'addNode' : 'replaceNode';
    this.#want(kind, change);
  }

  /**
   * Replaces or removes a lost machine that is still a member; otherwise partitions that should move there never could.
   */
  rescue(): void {
    const { nodes, meta, settings } = this.#world;
    const members = meta()?.nodes ?? [];
    const lost = members.find(({ id }) => nodes[id - 1]?.isDoubtful === true || this.#isMissing(id));
    const reserve = nodes.at(-1);
    if (lost === undefined || this.#wanted !== undefined) return;
    if (reserve?.state === 'absent' && !members.some(({ id }) => id === reserve.id)) {
      this.#want('replaceNode', { add: addressOf(reserve.id), remove: lost.id });
    } else if (members.length > settings.config.replicas) {
      this.#want('removeNode', { remove: lost.id });
    } else {
      // There is no other machine: this one has to come after all.
      this.#spare(lost.id)?.begin();
    }
  }

  /** It was added, and has not come. */
  #isMissing(id: NodeId): boolean {
    return this.#spare(id)?.state === 'absent';
  }

  #want(kind: string, change: NodeChange): void {
    this.#world.story.fault(kind, `(add ${change.add?.id ?? '-'}, remove ${change.remove ?? '-'})`);
    // The machine may exist before the cluster knows of it, or long after.
    const isLate = change.add !== undefined && this.#random.chance(LATE);
    if (isLate) this.#world.story.fault('deadNewcomer', `(node ${change.add?.id ?? '-'})`);
    if (isLate && this.#random.chance(NEVER)) return this.change(change);
    const delay = this.#random.exponential(isLate ? 8_000 : 500);
    this.#world.after(delay, () => this.#begin(this.#spare(change.add?.id)));
    this.change(change);
  }

  /** Asks for this change until it is accepted. */
  change(change: NodeChange): void {
    this.#wanted = change;
    this.#ask();
  }

  /** The data for a new node may take long to reach its disk. */
  #begin(node: SimNode | undefined): void {
    node?.begin();
    if (node === undefined || !this.#isActive || !this.#random.chance(SLOW)) return;
    this.#world.after(SLOW_MILLIS, node.slowDisk(SLOW_FACTOR));
  }

  #spare(id: NodeId | undefined): SimNode | undefined {
    return this.#world.nodes.find((node) => node.id === id);
  }

  #draw(state: MetaState): NodeChange | undefined {
    const { nodes, settings } = this.#world;
    // The last one is for `rescue`.
    const members = state.nodes.map(({ id }) => id);
    const isUsed = (id: NodeId): boolean => members.includes(id) || state.retired.includes(id);
    const spare = nodes.slice(0, -1).find((node) => node.state === 'absent' && !isUsed(node.id));
    const missing = members.find((id) => this.#isMissing(id) && this.#random.chance(0.5));
    const lost = members.find((id) => nodes[id - 1]?.isDoubtful === true) ?? missing;
    const mayRemove = members.length > settings.config.replicas;
    const kind = this.#random.pick(['add', 'remove', 'replace', 'replace'] as const);
    // A lost machine is removed first.
    const victim = lost ?? this.#random.pick(members);
    if (kind === 'remove') return mayRemove ? { remove: victim } : undefined;
    if (spare === undefined) return undefined;
    const add = { ...addressOf(spare.id), ...(settings.labels && drawLabels(this.#random, settings.labels)) };
    return kind === 'add' && lost === undefined ? { add } : { add, remove: victim };
  }

  #ask(hint?: NodeId): void {
    const change = this.#wanted;
    if (change === undefined) return;
    this.#asks += 1;
    const ask = this.#asks;
    const again = (delay: number, leader?: NodeId): void =>
      this.#world.after(delay, () => {
        if (this.#asks === ask) this.#ask(leader);
      });
    const up = this.#world.nodes.filter((node) => node.isRunning);
    const node = up.find(({ id }) => id === hint) ?? (up.length > 0 ? this.#random.pick(up) : undefined);
    again(ANSWER_MILLIS_MAX);
    node?.changeNodes(change, (result) => {
      if (this.#asks !== ask || this.#wanted !== change) return;
      this.#reported(change, result, (leader) => {
        this.#asks += 1;
        const next = this.#asks;
        this.#world.after(AGAIN_MILLIS, () => {
          if (this.#asks === next) this.#ask(leader);
        });
      });
    });
  }

  #reported(change: NodeChange, result: ChangeResult, again: (leader?: NodeId) => void): void {
    const { story } = this.#world;
    story.report(() => `the operator gets the answer ${JSON.stringify(result)}`);
    if (result.ok) {
      this.#wanted = undefined;
      return;
    }
    switch (result.reason) {
      case 'notLeader':
        again(result.leader);
        return;
      case 'overloaded':
      case 'unknownOutcome':
      case 'notMember':
        again();
        return;
      default:
        check(false, () => `a sound change was refused: ${JSON.stringify(change)}, ${result.reason}`);
    }
  }

  /** A change of members is committed, or the completion of its moves. */
  metaChanged(state: MetaState): void {
    if (state.settledVersion !== state.version || state.settledVersion === this.#settledVersion) return;
    this.#settledVersion = state.settledVersion;
    this.#world.story.fault('settled', `(version ${state.version})`);
    for (const id of state.retired) {
      if (this.#dismissed.has(id)) continue;
      this.#dismissed.add(id);
      if (this.#random.chance(this.#world.settings.zombies)) continue;
      this.#world.after(this.#random.exponential(500), () => this.#spare(id)?.lose());
    }
  }
}
