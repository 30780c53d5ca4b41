/** What is said of a node, and of when that is: a node that is not heard is never "up". Pure. */
import type { ReportedNode } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import { isHeldBy, lagOf } from './replicas.ts';
import type { Gravity } from './words.ts';

export interface NodeState {
  readonly state: string;
  readonly tone: Gravity;
  /** Its figures are of then, by the clock of whoever looks; undefined: of now. */
  readonly asOfMillis: number | undefined;
}

export interface Heard {
  /** It is the node that serves the page. */
  readonly isSelf: boolean;
  /** The page is old: nothing was heard since then. Undefined: it is live. */
  readonly oldMillis: number | undefined;
  /** When the report came. */
  readonly heardMillis: number;
}

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

/** Entries that the node lacks of the partition where it lacks most. */
export function lagIn({ partitions }: LiveCluster, node: number): number {
  const held = partitions.filter((partition) => isHeldBy(partition, node));
  return Math.max(0, ...held.map((partition) => lagOf(partition, node)));
}
