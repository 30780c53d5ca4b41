/**
 * Checks that a node with a wrong clock finds that out. The simulator knows how each clock runs, and a run has at most
 * one machine whose clock is wrong. Its node must notice in time if it can compare its clock with a majority; then it
 * must lead nothing, until its clock has been right for long enough. No other node may call its clock wrong.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ClockVerdict } from '../../src/clock/clock-rates.ts';
import type { SimNetwork } from './network.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check, type Story } from './story.ts';

export interface ClockCheckerInit {
  readonly settings: Settings;
  readonly story: Story;
  readonly nodes: () => readonly SimNode[];
  readonly network: SimNetwork;
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
  /** A node found its clock wrong, and hands over what it leads. */
  readonly found: () => void;
}

const CHECK_MILLIS = 100;
/** Pings leave once a second. */
const PING_MILLIS = 1_000;
/** A finding is remembered for twice as long as it took to find it, and at least this long. */
const REMEMBERED_MILLIS_MIN = 30_000;

export class ClockChecker {
  readonly #init: ClockCheckerInit;
  /** Two nodes have heard each other without a break since then. Keys are pairs, the lower id first. */
  readonly #inTouchSince = new Map<string, number>();
  readonly #unfitSince = new Map<NodeId, number>();
  /** A process has known another node since then. It compares only with nodes it knows. */
  readonly #knownSince = new Map<string, number>();

  constructor(init: ClockCheckerInit) {
    this.#init = init;
    this.#checkLater();
  }

  #checkLater(): void {
    this.#init.after(CHECK_MILLIS, () => {
      this.#check();
      this.#checkLater();
    });
  }

  /** A node reports a changed verdict. */
  judged(node: SimNode, verdict: ClockVerdict): void {
    const { story, now, found } = this.#init;
    story.report(() => `node ${node.id} judges its clock: ${JSON.stringify(verdict)}`);
    if (verdict.fit) {
      this.#unfitSince.delete(node.id);
      return;
    }
    story.fault('unfitClock', `(node ${node.id})`);
    this.#unfitSince.set(node.id, now());
    found();
    check(
      node.clock.wasWrongSince(node.startedAt),
      () => `node ${node.id} takes its clock for wrong, but it is right: ${JSON.stringify(verdict)}`,
    );
  }

  ended(node: NodeId): void {
    this.#unfitSince.delete(node);
  }

  #check(): void {
    const nodes = this.#init.nodes();
    this.#checkPaths(nodes);
    for (const node of nodes) {
      this.#checkKnown(node, nodes);
      this.#checkFound(node);
      this.#checkLeadsNothing(node);
      this.#checkTakenBack(node);
    }
  }

  #knownTo(node: SimNode): readonly NodeId[] {
    return (node.core?.meta?.state?.nodes ?? this.#init.settings.config.nodes).map(({ id }) => id);
  }

  #checkKnown(node: SimNode, nodes: readonly SimNode[]): void {
    const known = this.#knownTo(node);
    for (const { id } of nodes) {
      const key = `${node.id} ${node.life} ${id}`;
      if (!known.includes(id)) this.#knownSince.delete(key);
      else if (!this.#knownSince.has(key)) this.#knownSince.set(key, this.#init.now());
    }
  }

  #checkPaths(nodes: readonly SimNode[]): void {
    const { network, now } = this.#init;
    for (const a of nodes) {
      for (const b of nodes) {
        if (b.id <= a.id) continue;
        const isPath = (from: SimNode, to: SimNode): boolean =>
          network.isConnected(from.id, to.id) && !network.isCut(from.id, to.id);
        const areInTouch = a.isRunning && b.isRunning && isPath(a, b) && isPath(b, a);
        const key = `${a.id} ${a.life} ${b.id} ${b.life}`;
        if (!areInTouch) this.#inTouchSince.delete(key);
        else if (!this.#inTouchSince.has(key)) this.#inTouchSince.set(key, now());
      }
    }
  }

  #sinceInTouch(one: SimNode, other: SimNode): number {
    const [a, b] = one.id < other.id ? [one, other] : [other, one];
    return this.#inTouchSince.get(`${a.id} ${a.life} ${b.id} ${b.life}`) ?? Infinity;
  }

  /** In touch with a majority of the nodes it knows, for this long. */
  #canCompare(node: SimNode, millis: number): boolean {
    const { nodes, now } = this.#init;
    const known = this.#knownTo(node);
    const since = (other: SimNode): number =>
      Math.max(
        this.#sinceInTouch(node, other),
        this.#knownSince.get(`${node.id} ${node.life} ${other.id}`) ?? Infinity,
      );
    const compared = nodes().filter((other) => other !== node && since(other) <= now() - millis);
    return compared.length > known.length / 2;
  }

  /**
   * How long it may take to find that a clock is wrong: two very slow round trips and a few pings, even if some are
   * lost.
   */
  #foundMillis({ clock }: SimNode): number {
    const { network, timing } = this.#init.settings;
    const crawlMillis = network.crawlFraction > 0 ? network.crawlMillis : 0;
    const delays = 30 * (network.delayMinMillis + network.delayMeanMillis) + 4 * crawlMillis;
    const roundTrips = delays + 2 * timing.tickMillis;
    const pings = (network.drop > 0 || network.corrupt > 0 ? 8 : 4) * PING_MILLIS;
    const { wrongness } = clock;
    return roundTrips / Math.abs(wrongness - 1) / Math.min(1, wrongness) + pings / Math.min(1, wrongness);
  }

  #checkFound(node: SimNode): void {
    if (node.clock.wrongness === 1 || !node.isRunning) return;
    const millis = this.#foundMillis(node);
    if (this.#init.now() - node.clock.sameSinceMillis < millis || !this.#canCompare(node, millis)) return;
    check(
      this.#unfitSince.has(node.id),
      () => `node ${node.id} has not found out in ${millis} ms that its clock runs at ${node.clock.rate}`,
    );
  }

  #checkLeadsNothing(node: SimNode): void {
    const since = this.#unfitSince.get(node.id);
    if (since === undefined || !node.isRunning) return;
    const { electionMillis, tickMillis } = this.#init.settings.timing;
    const graceMillis = (2 * electionMillis + 4 * tickMillis) / Math.min(1, node.clock.rate);
    if (this.#init.now() - Math.max(since, node.pausedAt) < graceMillis) return;
    const leaderships = node.core?.raft.leaderships ?? 0;
    check(leaderships === 0, () => `node ${node.id} leads ${leaderships} groups, though its clock is unfit`);
  }

  /** The longest time that a finding may last if it took the whole life of the process to make. */
  #checkTakenBack(node: SimNode): void {
    const { wrongness, sameSinceMillis } = node.clock;
    if (wrongness !== 1 || !node.isRunning || !this.#unfitSince.has(node.id)) return;
    const lifeMillis = sameSinceMillis - node.startedAt;
    const millis = Math.max(REMEMBERED_MILLIS_MIN, 2 * lifeMillis) + 10 * PING_MILLIS;
    check(
      this.#init.now() - sameSinceMillis < millis,
      () => `node ${node.id} is still unfit, though its clock has been right for ${millis} ms`,
    );
  }
}
