/**
 * Chooses the state shown for a node, and the time it dates from. A node that cannot be heard is never shown as "up".
 * Pure.
 */
import type { ReportedNode } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import { isHeldBy, lagOf } from './replicas.ts';
import type { Gravity } from './words.ts';

/** State of a node as the page shows it. */
export interface NodeState {
  readonly state: string;
  readonly tone: Gravity;
  /** Age of the figures, as a time on the clock of the browser; undefined if they are current. */
  readonly asOfMillis: number | undefined;
}

/** From where and when the page heard of a node. */
export interface Heard {
  /** This node serves the page. */
  readonly isSelf: boolean;
  /** When the feed was lost; undefined if it is live. */
  readonly oldMillis: number | undefined;
  /** When the last report arrived. */
  readonly heardMillis: number;
}

/** The state to show for a node. */
export function nodeStateOf(node: ReportedNode, { isSelf, oldMillis, heardMillis }: Heard): NodeState {
  const { up, draining, clock, silentMillis = 0 } = node;
  if (!up) return { state: 'silent', tone: 'bad', asOfMillis: heardMillis - silentMillis };
  if (oldMillis !== undefined)
    return isSelf
      ? { state: 'silent', tone: 'bad', asOfMillis: oldMillis }
      : { state: 'was up', tone: 'usual', asOfMillis: oldMillis };
  if (draining === true) return { state: 'drained', tone: 'warning', asOfMillis: undefined };
  return clock === null || clock === 'fit'
    ? { state: 'up', tone: 'good', asOfMillis: undefined }
    : { state: `clock too ${clock}`, tone: 'warning', asOfMillis: undefined };
}

/** How many log entries the node is behind, in the partition where it is furthest behind. */
export function lagIn({ partitions }: LiveCluster, node: number): number {
  const held = partitions.filter((partition) => isHeldBy(partition, node));
  return Math.max(0, ...held.map((partition) => lagOf(partition, node)));
}
