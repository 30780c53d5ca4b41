/**
 * A log of recent faults and recoveries in the cluster, as seen by this node: the differences between consecutive
 * reports. For people; nothing is decided by it.
 */
import type { ClusterReport, ReportedNode } from '../api/cluster-report.ts';
import { type Fault, FAULT_PARTITIONS_MAX, type FaultKind, FAULTS_MAX } from '../api/monitoring.ts';

/** The faults that one node has seen. */
export class FaultLog {
  readonly #wallMillis: () => number;
  /** Latest first, at most `FAULTS_MAX`. The list is replaced whenever a fault is added. */
  #faults: readonly Fault[] = [];
  #before: ClusterReport | undefined;
  #lastId = 0;

  constructor(wallMillis: () => number) {
    this.#wallMillis = wallMillis;
  }

  /** The faults, latest first. */
  get faults(): readonly Fault[] {
    return this.#faults;
  }

  /** Call about once a second with the current report. The first report is only the baseline. */
  check(report: ClusterReport): void {
    const before = this.#before;
    this.#before = report;
    if (before === undefined) return;
    this.#checkNodes(before, report);
    this.#checkLeaders(before, report);
  }

  #checkNodes(before: ClusterReport, report: ClusterReport): void {
    const old = new Map(before.nodes.map((node) => [node.id, node]));
    for (const node of report.nodes) {
      const was = old.get(node.id);
      if (was === undefined) continue;
      this.#changed(node.id, [was.up, node.up], ['nodeHeard', 'nodeSilent']);
      this.#changed(node.id, [isUnfit(was), isUnfit(node)], ['clockUnfit', 'clockFit']);
      this.#changed(node.id, [was.draining === true, node.draining === true], ['drainBegun', 'drainEnded']);
    }
  }

  #changed(
    node: number,
    [was, is]: readonly [boolean, boolean],
    [begins, ends]: readonly [FaultKind, FaultKind],
  ): void {
    if (was !== is) this.#add(is ? begins : ends, node);
  }

  #checkLeaders(before: ClusterReport, report: ClusterReport): void {
    const leaders = new Map(before.partitions.map(({ id, leader }) => [id, leader]));
    const silent = new Set(report.nodes.filter(({ up }) => !up).map(({ id }) => id));
    const lost = new PartitionsByNode();
    const elected = new PartitionsByNode();
    const moved = new PartitionsByNode();
    for (const { id, leader } of report.partitions) {
      const was = leaders.get(id);
      if (was === undefined || was === leader) continue;
      // The leader may have been replaced before this report was taken.
      const isLost = was !== 0 && (leader === 0 || silent.has(was));
      if (isLost) lost.add(was, id);
      if (leader !== 0) (isLost || was === 0 ? elected : moved).add(leader, id);
    }
    for (const [node, partitions] of lost.all) this.#add('leaderLost', node, partitions);
    for (const [node, partitions] of elected.all) this.#add('leaderElected', node, partitions);
    for (const [node, partitions] of moved.all) this.#add('leaderMoved', node, partitions);
  }

  #add(kind: FaultKind, node: number, partitions?: readonly number[]): void {
    this.#lastId += 1;
    const fault: Fault = {
      id: this.#lastId,
      atMillis: this.#wallMillis(),
      kind,
      node,
      ...(partitions !== undefined && {
        count: partitions.length,
        partitions: partitions.slice(0, FAULT_PARTITIONS_MAX),
      }),
    };
    this.#faults = [fault, ...this.#faults].slice(0, FAULTS_MAX);
  }
}

class PartitionsByNode {
  readonly all = new Map<number, number[]>();

  add(node: number, partition: number): void {
    const known = this.all.get(node);
    if (known === undefined) this.all.set(node, [partition]);
    else known.push(partition);
  }
}

function isUnfit({ clock }: ReportedNode): boolean {
  return clock !== null && clock !== 'fit';
}
