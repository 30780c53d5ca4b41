/**
 * Gathers all leaders on one node as long as it can lead every partition with headroom to spare. Then their requests
 * are handled in the same event loop turns and disk writes, which cost much more than a single request. Without
 * headroom each partition is led where its placement says.
 *
 * The leader of group 0 decides, and sends its decision to all nodes once a second. Each node follows the decision
 * with the highest term and transfers the leaderships it has, one after the other. No decision is stored. A node
 * that has heard no decision for some seconds assumes that leaders are spread. While two nodes follow different
 * decisions, a partition may change its leader once or twice more; nothing else depends on it.
 *
 * - Leaders gather on the node with the most requests from clients: when the cluster starts, and later after a calm
 *   minute, in which no node was busy. If leaders were spread because their node was busy, the calm period doubles
 *   each time; else a few idle seconds suffice.
 * - They spread when their node was busy for three seconds and another machine has a processor to spare, or when
 *   their node may not lead any more.
 * - They move when clients send another node far more requests for some seconds.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { LoadReport } from '../wire/small-frames.ts';

/** The load of this node. */
export interface NodeLoad {
  /** Fraction of the time since the last call in which the main thread worked, 0 to 1. */
  readonly busy: number;
  /** Processors of its machine that were idle in that time. */
  readonly idleProcessors: number;
  /** Requests that its listeners have answered since the start. */
  readonly asked: number;
}

/** What `Gathering` needs. */
export interface GatheringInit extends MonotonicClock {
  readonly nodeId: NodeId;
  readonly load: () => NodeLoad;
  /** Nothing prevents this node from leading. */
  readonly mayLead: () => boolean;
  /** All nodes of the cluster. */
  readonly nodes: () => readonly NodeId[];
  /**
   * Nodes that leaders may gather on: those that hold every partition. Empty if leaders should be in several zones.
   */
  readonly places: () => readonly NodeId[];
  /** The term in which this node leads group 0; undefined if it does not lead it. */
  readonly decidesIn: () => number | undefined;
  readonly send: (to: NodeId, report: LoadReport) => void;
  /** Called when leaders belong elsewhere: on this node, or (`NO_NODE`) where the placement says. */
  readonly changed: (target: NodeId) => void;
}

const EVERY_MILLIS = 1_000;
/** Reports and decisions older than this do not count. */
const HEARD_MILLIS = 4_000;
const PERMILLE = 1_000;
/** Above this the node with the leaders has no headroom. */
const BUSY_PERMILLE = 600;
/** From the first report that says so to the third. Each is about the second before it: three busy seconds. */
const BUSY_MILLIS = 2_000;
/** A machine with less idle time than this could not lead faster; all nodes may run on one machine. */
const SPARE_PERMILLE = 300;
/**
 * All is calm while no node is busier than this. A node that leads everything works less than twice as much as the
 * busiest node of a spread cluster, so it will hardly exceed `BUSY_PERMILLE`.
 */
const CALM_PERMILLE = 330;
const IDLE_PERMILLE = 50;
const CALM_MILLIS = 60_000;
/**
 * The calm period doubles each time gathered leaders were too much for a node, so that they do not move to and fro;
 * up to this.
 */
const CALM_MILLIS_MAX = 32 * CALM_MILLIS;
/** After leaders have stayed gathered this long, a calm minute suffices again. */
const SETTLED_MILLIS = 30 * CALM_MILLIS;
const IDLE_MILLIS = 5_000;
/**
 * Leaders move to a node that gets more than `MUCH_MORE` times as many requests, and at least `ASKED_MIN` a second,
 * for `MORE_MILLIS`.
 */
const MUCH_MORE = 2;
const ASKED_MIN = 50;
const MORE_MILLIS = 10_000;

interface Heard {
  readonly report: LoadReport;
  readonly atMillis: number;
}

/** The gathering of leaders, as one node takes part in it. */
export class Gathering {
  readonly #init: GatheringInit;
  readonly #heard = new Map<NodeId, Heard>();
  #nextMillis: number;
  #asked = 0;
  #target: NodeId = NO_NODE;
  /** The term of group 0 in which the decision was made that this node follows. */
  #term = 0;
  /** When this node last made or heard that decision. */
  #decidedMillis = -Infinity;
  /** This node knows of no decision yet. */
  #isNew = true;
  /**
   * While this node decides: since when all nodes are calm, or idle, another node gets far more requests, or the
   * target is busy. Undefined: not the case.
   */
  #calmSince: number | undefined;
  #idleSince: number | undefined;
  #moreSince: number | undefined;
  #busySince: number | undefined;
  /** Leaders were spread because their node was busy. */
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

  /** Call every tick. */
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

  /** Takes the report of another node. */
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

  /** The last report of each node that has sent one recently. */
  #known(now: number): ReadonlyMap<NodeId, LoadReport> {
    const known = new Map<NodeId, LoadReport>();
    for (const node of this.#init.nodes()) {
      const heard = this.#heard.get(node);
      if (heard !== undefined && now - heard.atMillis <= HEARD_MILLIS) known.set(node, heard.report);
    }
    return known;
  }

  /** Decides while leaders are spread. Returns the node to gather on, or `NO_NODE`. */
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

  /** Decides while leaders are gathered. Returns the node to gather on from now on, or `NO_NODE`. */
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

  /** Another node can lead and has a processor to spare. */
  #canTakeOver(known: ReadonlyMap<NodeId, LoadReport>): boolean {
    return [...known].some(
      ([node, { mayLead, sparePermille }]) =>
        node !== this.#target && mayLead && sparePermille >= SPARE_PERMILLE,
    );
  }

  /** The node with the most requests from clients; ties go to the lowest id. `NO_NODE` if none is able. */
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
