/**
 * Leaders gather on one node while it could lead every partition and have headroom left: their requests share its turns and its disk
 * writes, which cost much more than a request. When it has none left, each partition is led where its placement says.
 *
 * The leader of group 0 decides, and tells all nodes once a second. Each node follows the decision of the highest term: it transfers the
 * groups that it leads, one after the other. No decision is stored. A node that has heard none for some seconds takes leaders to be spread.
 * While two nodes follow different decisions a partition may change its leader once or twice more; nothing else depends on it.
 *
 * - Leaders gather on the node that clients ask most: when the cluster starts, and later after a calm minute, in which no node was busy. If they
 *   were spread because their node was busy, each time takes twice as long as the one before; else some idle seconds suffice.
 * - They spread when their node was busy three seconds in a row and another machine has a processor to spare, or when their node may not lead any more.
 * - They move when clients ask another node much more for some seconds.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { LoadReport } from '../wire/load-report.ts';

/** What a node can say of itself. */
export interface NodeLoad {
  /** Share of the time since the last call in which the main thread worked, from 0 to 1. */
  readonly busy: number;
  /** Processors of its machine that nobody used in that time. */
  readonly idleProcessors: number;
  /** Requests that its doors have answered since it began. */
  readonly asked: number;
}

export interface GatheringInit {
  readonly nodeId: NodeId;
  readonly monotonicMillis: () => number;
  readonly load: () => NodeLoad;
  /** Nothing keeps this node from leading. */
  readonly mayLead: () => boolean;
  /** All nodes of the cluster. */
  readonly nodes: () => readonly NodeId[];
  /** Nodes on which leaders may gather: those that hold every partition. None where leaders belong to several zones. */
  readonly places: () => readonly NodeId[];
  /** The term in which this node leads group 0; undefined if it does not. */
  readonly decidesIn: () => number | undefined;
  readonly send: (to: NodeId, report: LoadReport) => void;
  /** Leaders belong elsewhere now: to this node, or, if it is `NO_NODE`, where the placement says. */
  readonly changed: (target: NodeId) => void;
}

const EVERY_MILLIS = 1_000;
/** A report or a decision that is older does not count. */
const HEARD_MILLIS = 4_000;
const PERMILLE = 1_000;
/** The node on which leaders are gathered has no headroom left. */
const BUSY_PERMILLE = 600;
/** It has none for so long, that is in three reports: what others say of a second is heard in the one after. */
const BUSY_MILLIS = 2_000;
/** A machine with less of a processor to spare would lead nothing faster: as where all nodes share one. */
const SPARE_PERMILLE = 300;
/** A node that leads all works at most nearly twice as much as the busiest of those that share that. */
const CALM_PERMILLE = 330;
const IDLE_PERMILLE = 50;
const CALM_MILLIS = 60_000;
/** Each time that gathered leaders were too much for a node, they wait for twice as long: else they would go to and fro. */
const CALM_MILLIS_MAX = 32 * CALM_MILLIS;
/** When leaders have stayed gathered for so long, a calm minute suffices again. */
const SETTLED_MILLIS = 30 * CALM_MILLIS;
const IDLE_MILLIS = 5_000;
/** Leaders move to a node that is asked more than so many times as much, so often a second at least, for so long. */
const MUCH_MORE = 2;
const ASKED_MIN = 50;
const MORE_MILLIS = 10_000;

interface Heard {
  readonly report: LoadReport;
  readonly atMillis: number;
}

export class Gathering {
  readonly #init: GatheringInit;
  readonly #heard = new Map<NodeId, Heard>();
  #nextMillis: number;
  #asked = 0;
  #target: NodeId = NO_NODE;
  /** The term of group 0 in which its leader made the decision that this node follows. */
  #term = 0;
  /** When this node last made that decision, or heard it. */
  #decidedMillis = -Infinity;
  /** As far as this node knows, nobody has said yet where leaders are to gather. */
  #isNew = true;
  /** While this node decides: since when all are calm, or idle, or another node is asked more, or the target is busy; undefined: it is not so. */
  #calmSince: number | undefined;
  #idleSince: number | undefined;
  #moreSince: number | undefined;
  #busySince: number | undefined;
  /** Leaders were spread as their node was busy. */
  #wasBusy = false;
  #calmMillis = CALM_MILLIS;
  #gatheredMillis = 0;

  constructor(init: GatheringInit) {
    this.#init = init;
    this.#nextMillis = init.monotonicMillis() + EVERY_MILLIS;
  }

  /** The node on which leaders are gathered; `NO_NODE`: they are where the placement says. */
  get target(): NodeId {
    return this.#target;
  }

  /** Time passed. */
  tick(): void {
    const { nodeId, monotonicMillis, nodes, send, decidesIn } = this.#init;
    const now = monotonicMillis();
    if (now < this.#nextMillis) return;
    this.#nextMillis = now + EVERY_MILLIS;
    const own = this.#ownReport();
    this.#heard.set(nodeId, { report: own, atMillis: now });
    const term = decidesIn();
    if (term !== undefined && term >= this.#term) this.#decide(term, now);
    else this.#forgetOldDecision(now);
    const isDecided = term !== undefined && term >= this.#term && !this.#isNew;
    const report = isDecided ? { ...own, decided: { term, target: this.#target } } : own;
    for (const node of nodes()) if (node !== nodeId) send(node, report);
  }

  receive(from: NodeId, report: LoadReport): void {
    const now = this.#init.monotonicMillis();
    this.#heard.set(from, { report, atMillis: now });
    const { decided } = report;
    if (decided === undefined || decided.term < this.#term) return;
    this.#term = decided.term;
    this.#decidedMillis = now;
    this.#isNew = false;
    this.#setTarget(decided.target);
  }

  #ownReport(): LoadReport {
    const { load, mayLead } = this.#init;
    const { busy, idleProcessors, asked } = load();
    const askedPerSecond = Math.max(0, asked - this.#asked);
    this.#asked = asked;
    const busyPermille = Math.round(Math.min(1, Math.max(0, busy)) * PERMILLE);
    const sparePermille = Math.round(Math.max(0, idleProcessors) * PERMILLE);
    return { busyPermille, sparePermille, askedPerSecond, mayLead: mayLead() };
  }

  #forgetOldDecision(now: number): void {
    this.#calmSince = undefined;
    this.#idleSince = undefined;
    this.#moreSince = undefined;
    this.#busySince = undefined;
    if (now - this.#decidedMillis > HEARD_MILLIS) this.#setTarget(NO_NODE);
  }

  #decide(term: number, now: number): void {
    this.#term = term;
    this.#decidedMillis = now;
    const known = this.#known(now);
    const able = this.#init.places().filter((node) => known.get(node)?.mayLead === true);
    const target = this.#target === NO_NODE ? this.#gather(known, able, now) : this.#stay(known, able, now);
    this.#setTarget(target);
  }

  /** The last report of each node that has sent one lately. */
  #known(now: number): ReadonlyMap<NodeId, LoadReport> {
    const known = new Map<NodeId, LoadReport>();
    for (const node of this.#init.nodes()) {
      const heard = this.#heard.get(node);
      if (heard !== undefined && now - heard.atMillis <= HEARD_MILLIS) known.set(node, heard.report);
    }
    return known;
  }

  /** Leaders are spread. Returns where they are to gather, or `NO_NODE`. */
  #gather(known: ReadonlyMap<NodeId, LoadReport>, able: readonly NodeId[], now: number): NodeId {
    const most = Math.max(...[...known.values()].map(({ busyPermille }) => busyPermille));
    this.#calmSince = most <= CALM_PERMILLE ? (this.#calmSince ?? now) : undefined;
    this.#idleSince = most <= IDLE_PERMILLE ? (this.#idleSince ?? now) : undefined;
    const isIdle = !this.#wasBusy && lasted(this.#idleSince, IDLE_MILLIS, now);
    const isCalm = isIdle || lasted(this.#calmSince, this.#calmMillis, now);
    const isHeard = known.size === this.#init.nodes().length;
    const isFirst = this.#isNew && isHeard && most <= BUSY_PERMILLE;
    if ((!isCalm && !isFirst) || able.length === 0) return NO_NODE;
    this.#isNew = false;
    if (this.#wasBusy) this.#calmMillis = Math.min(2 * this.#calmMillis, CALM_MILLIS_MAX);
    this.#wasBusy = false;
    this.#gatheredMillis = now;
    return this.#mostAsked(known, able);
  }

  /** Leaders are gathered. Returns where they are to be from now on. */
  #stay(known: ReadonlyMap<NodeId, LoadReport>, able: readonly NodeId[], now: number): NodeId {
    const load = known.get(this.#target);
    this.#calmSince = undefined;
    this.#idleSince = undefined;
    if (load === undefined || !able.includes(this.#target)) return NO_NODE;
    const isTooBusy = load.busyPermille > BUSY_PERMILLE && this.#canTakeOver(known);
    this.#busySince = isTooBusy ? (this.#busySince ?? now) : undefined;
    if (now - this.#gatheredMillis >= SETTLED_MILLIS) this.#calmMillis = CALM_MILLIS;
    if (lasted(this.#busySince, BUSY_MILLIS, now)) {
      this.#wasBusy = true;
      return NO_NODE;
    }
    const best = this.#mostAsked(known, able);
    const asked = known.get(best)?.askedPerSecond ?? 0;
    const isMore = asked >= ASKED_MIN && asked > MUCH_MORE * load.askedPerSecond;
    this.#moreSince = isMore ? (this.#moreSince ?? now) : undefined;
    return lasted(this.#moreSince, MORE_MILLIS, now) ? best : this.#target;
  }

  /** Another node has a processor for what it would lead. */
  #canTakeOver(known: ReadonlyMap<NodeId, LoadReport>): boolean {
    return [...known].some(
      ([node, { mayLead, sparePermille }]) =>
        node !== this.#target && mayLead && sparePermille >= SPARE_PERMILLE,
    );
  }

  /** The node that clients ask most; if several are asked as much, the one with the lowest id. `NO_NODE` if none is able. */
  #mostAsked(known: ReadonlyMap<NodeId, LoadReport>, able: readonly NodeId[]): NodeId {
    const askedOf = (node: NodeId): number => known.get(node)?.askedPerSecond ?? 0;
    const most = Math.max(...able.map(askedOf));
    const best = able.filter((node) => askedOf(node) === most);
    return best.length === 0 ? NO_NODE : Math.min(...best);
  }

  #setTarget(target: NodeId): void {
    if (target === this.#target) return;
    this.#target = target;
    this.#moreSince = undefined;
    this.#busySince = undefined;
    this.#init.changed(target);
  }
}

function lasted(since: number | undefined, millis: number, now: number): boolean {
  return since !== undefined && now - since >= millis;
}
