/**
 * Decides which node should lead each partition: the one that leaders gather on, else the first in the placement. A
 * node that knows nothing of group 0 avoids leading.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { type ClusterPlacement, META_GROUP } from '../meta/cluster-placement.ts';
import type { MetaState } from '../meta/cluster-state.ts';
import { groupOfPartition } from '../partition/placement.ts';
import { encodeLoadReport, type LoadReport } from '../wire/small-frames.ts';
import { Gathering } from './gathering.ts';
import type { NodeCoreInit } from './node-core-init.ts';

/** What `Leading` needs. */
export interface LeadingInit {
  readonly init: NodeCoreInit;
  readonly raft: MultiRaft;
  readonly placement: ClusterPlacement;
  /** The state of group 0 on this node. */
  readonly state: () => MetaState | undefined;
}

/** The preferred leaders, as one node knows them. */
export class Leading {
  readonly #init: LeadingInit;
  /** Undefined: leaders are always spread. */
  readonly #gathering: Gathering | undefined;

  constructor(init: LeadingInit) {
    this.#init = init;
    this.#gathering = this.#newGathering();
  }

  /** The node that leaders are gathered on; `NO_NODE`: none; undefined: they never gather. */
  get gatheredOn(): NodeId | undefined {
    return this.#gathering?.target;
  }

  /** Hands the preferred leaders to Raft. Call it when the placement or the gathering has changed. */
  prefer(): void {
    const { placement, raft } = this.#init;
    const target = this.gatheredOn ?? NO_NODE;
    for (let partition = 0; partition < placement.partitionCount; partition += 1) {
      const replicas = placement.replicasOf(partition);
      const leader = replicas.includes(target) ? target : replicas[0];
      if (leader !== undefined) raft.preferLeader(groupOfPartition(partition), leader);
    }
    const leader = placement.membersOf(META_GROUP).voters[0];
    if (leader !== undefined) raft.preferLeader(META_GROUP, leader);
  }

  /** Call once per tick. */
  tick(): void {
    this.#gathering?.tick();
  }

  /** Takes the load report of another node. */
  heard(from: NodeId, report: LoadReport): void {
    this.#gathering?.receive(from, report);
  }

  #newGathering(): Gathering | undefined {
    const { init, raft, placement, state } = this.#init;
    const { nodeId, clocks, config, load, leadersGather, send } = init;
    if (load === undefined || config.leaders === 'spread') return undefined;
    return new Gathering({
      nodeId,
      monotonicMillis: clocks.monotonicMillis,
      load,
      mayLead: () => raft.isWilling,
      nodes: () => state()?.nodes.map(({ id }) => id) ?? [],
      places: () => placesOf(state(), placement),
      decidesIn: () => {
        const status = raft.status(META_GROUP);
        return status?.role === 'leader' ? status.term : undefined;
      },
      send: (to, report) => send(to, 'load', encodeLoadReport(report)),
      changed: (target) => {
        this.prefer();
        leadersGather?.(target);
      },
    });
  }
}

/** Nodes that hold a replica of every partition; empty if leaders should be in several zones. */
function placesOf(state: MetaState | undefined, placement: ClusterPlacement): readonly NodeId[] {
  const nodes = state?.nodes ?? [];
  const zones = new Set(nodes.flatMap(({ zone }) => zone ?? []));
  if (zones.size > 1) return [];
  const isEverywhere = (id: NodeId): boolean => {
    for (let partition = 0; partition < placement.partitionCount; partition += 1)
      if (!placement.replicasOf(partition).includes(id)) return false;
    return true;
  };
  return nodes.map(({ id }) => id).filter(isEverywhere);
}

/** What `FirstRules` needs. */
export interface FirstRulesInit {
  readonly raft: Pick<MultiRaft, 'avoidLeading'>;
  /** The state of group 0 on this node. */
  readonly state: () => MetaState | undefined;
  /** Length of an election. */
  readonly electionTicks: number;
}

/** Longer than it takes to elect a leader of group 0 and for it to reach this node. */
const ELECTIONS = 5;

/**
 * Makes a node that knows nothing of group 0 avoid leading. Such a node knows no rules, and a new partition gets
 * its first rules from its leader. So it lets others lead, which may reach group 0: if the link between two of
 * three nodes is cut, both still are in a majority. Driven by ticks.
 */
export class FirstRules {
  readonly #init: FirstRulesInit;
  /** Ticks since the start during which the node has known nothing. */
  #unknownTicks = 0;

  constructor(init: FirstRulesInit) {
    this.#init = init;
  }

  /** Call once per tick. */
  tick(): void {
    const { raft, state, electionTicks } = this.#init;
    const patienceTicks = ELECTIONS * electionTicks;
    const isUnknown = state() === undefined;
    const wasLong = this.#unknownTicks >= patienceTicks;
    this.#unknownTicks = isUnknown ? this.#unknownTicks + 1 : 0;
    const overdue = this.#unknownTicks - patienceTicks;
    // Repeated, as the node may be elected nevertheless.
    if (overdue >= 0 && overdue % electionTicks === 0) raft.avoidLeading('rulesUnknown', true);
    else if (!isUnknown && wasLong) raft.avoidLeading('rulesUnknown', false);
  }
}
